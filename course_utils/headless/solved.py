"""A lesson with its exercises solved: `python -m course_utils.headless.solved 05`."""

import argparse
import sys
from pathlib import Path
from typing import Any

import nbformat

from course_utils.atomic import write_atomically
from course_utils.exercises import solutions
from course_utils.headless import lessons
from course_utils.headless.errors import UsageError
from course_utils.headless.form import canonical


def exercises_of(cells: list[Any]) -> dict[str, Any]:
    """The cells of a notebook that hold an exercise, by the id in their tag, in order."""
    tagged = ((tag, cell) for cell in cells for tag in cell["metadata"].get("tags", []))
    return {
        tag.removeprefix(solutions.TAG): cell
        for tag, cell in tagged
        if tag.startswith(solutions.TAG)
    }


def put_solutions_in(cells: list[Any], lesson: str, folder: Path) -> list[str]:
    """Replace the source of each exercise's cell by its solution; returns the ids.

    Args:
        cells: of a notebook; changed in place.
        lesson: its name, "05_shard_map".
        folder: where the solutions are.

    Raises:
        UsageError: an exercise has no solution, or a solution no exercise; the message names it.
    """
    exercises = exercises_of(cells)
    path = folder / f"lesson_{lesson.split('_')[0]}.py"
    try:
        known = solutions.read(path) if exercises or path.exists() else {}
    except OSError as error:
        raise UsageError(f"{lesson} has exercises, but {path} can't be read: {error}") from error
    for id in exercises.keys() ^ known.keys():
        has, lacks = (lesson, path.name) if id in exercises else (path.name, lesson)
        raise UsageError(f"Exercise {id} is in {has}, but not in {lacks}.")
    for id, cell in exercises.items():
        cell["source"] = known[id].code
    return list(exercises)


def main(arguments: list[str] | None = None) -> int:
    """Write the lessons with their exercises solved; returns the exit status."""
    parser = argparse.ArgumentParser("python -m course_utils.headless.solved", description=__doc__)
    parser.add_argument("lessons", nargs="*", metavar="LESSON", help="number or name; default: all")
    parser.add_argument("--output", type=Path, default=Path("runs/solved"), metavar="DIR")
    options = parser.parse_args(arguments)
    try:
        found = lessons.find(lessons.REPOSITORY / "notebooks")
        for lesson in lessons.choose(found, options.lessons):
            notebook = nbformat.read(lesson.path, as_version=4)
            put_solutions_in(notebook.cells, lesson.name, solutions.FOLDER)
            options.output.mkdir(parents=True, exist_ok=True)
            path = options.output / lesson.path.name
            write_atomically(path, canonical(nbformat.writes(notebook)))
            print(path)
    except (UsageError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
