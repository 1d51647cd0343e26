"""Lessons whose exercises are followed by their solutions, opened and run."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import nbformat
from lab_page import Lesson, Window
from lab_server import Server

from course_utils.exercises import solutions
from course_utils.headless.solved import exercises_of

if TYPE_CHECKING:  # without Playwright the tests are skipped, not broken
    from playwright.sync_api import Browser


def solutions_of(path: str | Path) -> dict[str, solutions.Solution]:
    """The solutions of a lesson's exercises by their ids, in order; empty if it has none."""
    file = solutions.FOLDER / f"lesson_{Path(path).name[:2]}.py"
    return solutions.read(file) if file.exists() else {}


def opened_and_run(name: str, browser: "Browser", server: Server) -> Iterator[Lesson]:
    """A lesson with its solutions, in a window of its own, run to its end; its kernels end with it."""
    path = f"notebooks/{name}"
    _put_solutions_in(server.root / path)
    with Window(browser, server) as window:
        lesson = window.open(path)
        lesson.run_all()
        yield lesson
    server.end_kernels()


def _put_solutions_in(path: Path) -> None:
    """Add a cell with the solution below each exercise, which stays as it is."""
    notebook = nbformat.read(path, as_version=4)
    known = solutions_of(path)
    for id, cell in exercises_of(notebook.cells).items():
        below = notebook.cells.index(cell) + 1
        notebook.cells.insert(below, nbformat.v4.new_code_cell(known[id].code))
    nbformat.write(notebook, path)
