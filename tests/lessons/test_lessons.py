"""Every lesson runs by itself: headlessly, twice over, from anywhere, with whatever data there is.

The tests of this file use the small `test` profile; nbval runs each lesson at its full size.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import nbformat
import papermill
import pytest
from lesson_files import LESSONS, NOTEBOOKS, ROOT, code_cells, in_test_profile
from nbclient import NotebookClient

from course_utils.exercises import solutions
from course_utils.headless.collect import collect
from course_utils.headless.solved import exercises_of, put_solutions_in

each_lesson = pytest.mark.parametrize("lesson", LESSONS, ids=lambda path: path.stem)


def run_headless(lesson: Path, output: Path, *options: str, cwd: Path, **environment: str) -> dict:
    """Run a lesson through the headless runner; return what results.json says of the run."""
    command = [sys.executable, "-m", "course_utils.headless", lesson.stem, "--output", str(output)]
    done = subprocess.run(
        [*command, "--profile", "test", *options],
        cwd=cwd,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=500,
    )
    (results,) = output.rglob("results.json")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return json.loads(results.read_text())


def execute(notebook: nbformat.NotebookNode, cwd: Path) -> nbformat.NotebookNode:
    """Execute a notebook in a kernel whose working directory is `cwd`."""
    client = NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(cwd)}})
    return client.execute()


def test_there_are_lessons():
    assert [path.stem for path in LESSONS][:2] == ["00_start_here", "01_training_loop"]


@each_lesson
def test_a_lesson_passes_headlessly_and_keeps_its_checkpoints_and_figures(lesson, tmp_path):
    results = run_headless(lesson, tmp_path / "runs", cwd=tmp_path)
    (entry,) = results["notebooks"]
    assert entry["status"] == "passed"
    assert entry["checkpoints"]
    assert all(checkpoint["passed"] for checkpoint in entry["checkpoints"])
    assert entry["results"]
    exercises = exercises_of(nbformat.read(lesson, as_version=4).cells)
    assert entry["exercises"] == dict.fromkeys(exercises, "not attempted")
    assert results["parameters"] == {"PROFILE": "test"}
    assert results["environment"]["dataset"]


@pytest.mark.any_python
@each_lesson
def test_every_cell_runs_twice_from_the_root_on_the_sample_and_solved_exercises_again_at_the_end(
    lesson, tmp_path, monkeypatch
):
    monkeypatch.setenv("FASHION_MNIST_SOURCES", "cache,sample")  # no directory, package or network
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "empty"))
    notebook = in_test_profile(lesson)
    ids = put_solutions_in(notebook.cells, lesson.stem, solutions.FOLDER)
    for place in reversed(range(len(notebook.cells))):
        if notebook.cells[place].cell_type == "code":
            notebook.cells.insert(place, nbformat.v4.new_code_cell(notebook.cells[place].source))
    # Whoever has run all of it goes back to the exercises.
    again = exercises_of(notebook.cells).values()
    notebook.cells += [nbformat.v4.new_code_cell(cell.source) for cell in again]
    nbformat.write(notebook, tmp_path / lesson.name)
    done = papermill.execute_notebook(
        tmp_path / lesson.name, tmp_path / "done.ipynb", cwd=ROOT, progress_bar=False
    )
    reported = collect(done.cells)
    assert reported.exercises == dict.fromkeys(ids, "solved"), reported.said
    assert reported.environment["dataset"].startswith("sample")


@each_lesson
def test_the_parts_of_a_lesson_are_where_a_reader_expects_them(lesson):
    notebook = nbformat.read(lesson, as_version=4)
    first = notebook.cells[0]
    assert first.cell_type == "markdown"
    assert first.source.startswith(f"# {lesson.stem[:2]} · ")
    assert "You will" in first.source
    assert "**Time:**" in first.source
    assert "**Needs:**" in first.source
    assert "parameters" in notebook.cells[1].metadata.get("tags", [])
    assert any("## What you take along" in cell.source for cell in notebook.cells)


@each_lesson
def test_a_cell_is_short(lesson):
    lengths = {cell.source[:40]: len(cell.source.splitlines()) for cell in code_cells(lesson)}
    assert {start: n for start, n in lengths.items() if n > 30} == {}


@each_lesson
def test_a_line_of_code_fits_the_page(lesson):
    lines = [line for cell in code_cells(lesson) for line in cell.source.splitlines()]
    assert [line for line in lines if len(line) > 102] == []  # what a window of 1280 pixels shows


def test_parameters_reach_the_lesson_and_come_back_in_the_record(tmp_path):
    lesson = NOTEBOOKS / "01_training_loop.ipynb"
    options = ("--params", "BATCH_SIZE=64 TRAIN_STEPS=70")
    results = run_headless(lesson, tmp_path / "runs", *options, cwd=NOTEBOOKS)
    figures = results["notebooks"][0]["results"]
    assert figures["batch size"]["value"] == 64
    assert figures["train steps"]["value"] == 70
    assert results["parameters"] == {"PROFILE": "test", "BATCH_SIZE": 64, "TRAIN_STEPS": 70}


def with_kept_outputs() -> nbformat.NotebookNode:
    """Lesson 01 up to its first cell whose outputs nbval compares."""
    notebook = nbformat.read(NOTEBOOKS / "01_training_loop.ipynb", as_version=4)
    marked = [i for i, cell in enumerate(notebook.cells) if "NBVAL_CHECK_OUTPUT" in cell.source]
    notebook.cells = notebook.cells[: marked[0] + 1]
    return notebook


@pytest.mark.parametrize("tampered", [False, True], ids=["as committed", "changed by one digit"])
def test_nbval_compares_the_kept_outputs(tmp_path, tampered):
    notebook = with_kept_outputs()
    if tampered:
        table = notebook.cells[-1].outputs[0].data
        assert "200,704" in table["text/plain"]
        table["text/plain"] = table["text/plain"].replace("200,704", "200,705")
    path = tmp_path / "lesson.ipynb"
    nbformat.write(notebook, path)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--nbval", "--nbval-current-env", str(path)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == (1 if tampered else 0), done.stdout[-3000:]
    if tampered:
        assert "1 failed" in done.stdout
