"""Headless runs collect what became of each exercise, and run lessons with all of them solved."""

import nbformat
import pytest
from headless_lab import Lab
from nbformat.v4 import new_code_cell

from course_utils.exercises import book
from course_utils.headless import lessons
from course_utils.headless.solved import main as write_solved

pytestmark = pytest.mark.any_python

IMPORT = "from course_utils.exercises import exercise"
LOG = 'log = [{"step": 1, "loss": 2.0}, {"step": 9, "loss": 0.5}]'
CHECK = 'exercise("01.3").check(curve, log=log)'
GAP = 'curve = {"step": ..., "updates": ...}'
RIGHT = 'curve = {"step": 9, "updates": 8}'
WRONG = 'curve = {"step": 9, "updates": 9}'


def lab_with(tmp_path, *sources, solution=None):
    """A lesson 01 whose last cell is exercise 01.3, with a solution beside it."""
    lab = Lab(tmp_path)
    path = lab.lesson("01_small", IMPORT, LOG, *sources)
    notebook = nbformat.read(path, as_version=4)
    notebook.cells.append(
        new_code_cell(f"{GAP}\n{CHECK}", metadata={"tags": ["exercise:01.3"]}, id="ex")
    )
    nbformat.write(notebook, path)
    if solution:
        (tmp_path / "solutions").mkdir()
        why = "# %% [markdown] exercise:01.3\n# Because.\n"
        (tmp_path / "solutions/lesson_01.py").write_text(
            f"{why}\n# %% exercise:01.3\n{solution}\n{CHECK}\n"
        )
    return lab


def test_statuses_reach_the_results_the_report_and_no_participants_progress(tmp_path):
    broken = 'def step(loss_fn, params, batch, rate):\n    return params["no"]'
    other = 'exercise("01.1").check(step, loss_fn=len, params=[], batch=())'
    lab = lab_with(tmp_path, f"{RIGHT}\n{CHECK}", f"{broken}\n{other}")
    state = tmp_path / "state"
    status, said = lab.run(env={"XDG_STATE_HOME": str(state), "JAX_COURSE_PROGRESS": ""})
    assert status == 0, said
    (entry,) = lab.results()["notebooks"]
    # The untouched cell comes last, and its word is the last about 01.3.
    assert entry["exercises"] == {"01.3": "not attempted", "01.1": "error"}
    assert "0/2" in said
    assert not state.exists()
    page = (lab.latest / "index.html").read_text()
    assert "01.1: error" in page
    outputs = nbformat.read(lab.latest / "01_small.ipynb", as_version=4).cells
    shown = [o["data"] for c in outputs for o in c.get("outputs", []) if "data" in o]
    error = next(d for d in shown if "stopped by an error" in d["text/plain"])
    assert 'line 2: return params["no"]' in error["text/plain"]
    assert "line 2: return params[&quot;no&quot;]" in error["text/html"]
    assert "course_utils" not in error["text/plain"]


def test_a_run_with_the_solutions_says_that_all_are_solved(tmp_path):
    lab = lab_with(tmp_path, solution=RIGHT)
    status, said = lab.run(env={"SOLVED": "1"})
    assert status == 0, said
    assert lab.results()["notebooks"][0]["exercises"] == {"01.3": "solved"}
    assert lab.results()["environment"]["solved"] is True
    assert "1/1" in said
    assert "every exercise with its solution" in (lab.latest / "index.html").read_text()
    assert GAP in (lab.notebooks / "01_small.ipynb").read_text().replace('\\"', '"')


def test_a_solution_that_is_wrong_fails_its_lesson_and_is_named(tmp_path):
    lab = lab_with(tmp_path, solution=WRONG)
    status, said = lab.run("--solved")
    assert status == 1
    assert "Exercise 01.3 is 'wrong' with its own solution. A step reports the loss" in said
    assert "Look at solutions/lesson_01.py" in said


@pytest.mark.parametrize(
    ("solution", "said"),
    [
        (None, "can't be read"),
        (f"{RIGHT}\n\n# %% exercise:01.4\n{RIGHT}", "01.4 is in lesson_01.py, but not in 01_small"),
    ],
)
def test_an_exercise_without_its_solution_or_the_other_way_round_is_an_error(
    tmp_path, solution, said
):
    lab = lab_with(tmp_path, solution=solution)
    status, printed = lab.run("--solved")
    assert status == 1
    assert said in " ".join(printed.split())


def test_solved_goes_on_as_it_began(tmp_path):
    lab = lab_with(tmp_path, solution=RIGHT)
    lab.run("--solved")
    results = lab.latest / "results.json"
    results.write_text(results.read_text().replace('"status": "passed"', '"status": "running"'))
    status, said = lab.run("--resume", "1")
    assert status == 0, said
    assert lab.results()["notebooks"][0]["exercises"] == {"01.3": "solved"}
    status, said = lab.run("--resume", "1", "--solved")
    assert status == 2
    assert "leave out SOLVED" in said


def test_instructors_get_the_lessons_with_their_exercises_solved(tmp_path, capsys):
    assert write_solved(["01", "--output", str(tmp_path / "solved")]) == 0
    path = tmp_path / "solved/01_training_loop.ipynb"
    assert capsys.readouterr().out.strip() == str(path)
    assert '"step": half_way' in "".join(c.source for c in nbformat.read(path, as_version=4).cells)
    assert write_solved(["77"]) == 2


def test_the_runner_solves_a_whole_lesson_of_the_course(tmp_path):
    lab = Lab(tmp_path)
    lab.notebooks = lessons.REPOSITORY / "notebooks"
    status, said = lab.run("03", "--profile", "test", "--solved", seconds=300)
    assert status == 0, said[-3000:]
    (entry,) = lab.results()["notebooks"]
    assert entry["exercises"] == dict.fromkeys(book.definitions("03"), "solved")
