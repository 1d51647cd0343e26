"""What a lesson promises is trained; every exercise has its cell, its text and its solution."""

import ast
import re

import nbformat
import pytest
from exercise_answers import TABLES

from course_utils.exercises import book, solutions
from course_utils.headless import lessons as lesson_files
from course_utils.headless.solved import exercises_of, put_solutions_in

NOTEBOOKS = {
    path.stem[:2]: path
    for path in lesson_files.find(lesson_files.REPOSITORY / "notebooks").values()
}
WITH_EXERCISES = book.lessons()
MOST = {"11": 6}  # the last lesson is an exercise itself
each_lesson = pytest.mark.parametrize("lesson", WITH_EXERCISES)


def cells(lesson):
    return nbformat.read(NOTEBOOKS[lesson], as_version=4).cells


def bullets(lesson):
    """The "You will" bullets of a lesson's first cell, each as one line."""
    promise = cells(lesson)[0].source.split("You will")[1].split("**Lessons:**")[0]
    return [" ".join(bullet.split()) for bullet in re.split(r"^- ", promise, flags=re.M)[1:]]


def test_there_are_exercises():
    assert {"01", "05"} <= set(WITH_EXERCISES)


@each_lesson
def test_a_lesson_has_a_few_exercises_numbered_in_order(lesson):
    ids = list(book.definitions(lesson))
    assert 2 <= len(ids) <= MOST.get(lesson, 4)
    assert ids == [f"{lesson}.{number}" for number in range(1, len(ids) + 1)]
    assert list(exercises_of(cells(lesson))) == ids, "tagged cells, in the order of the lesson"
    assert list(solutions.read(solutions.FOLDER / f"lesson_{lesson}.py")) == ids
    assert (TABLES / f"lesson_{lesson}_answers.py").exists()


@each_lesson
def test_every_bullet_is_trained_and_every_exercise_trains_bullets_that_exist(lesson):
    promised, trained = bullets(lesson), set()
    for exercise in book.definitions(lesson).values():
        for words in exercise.trains:
            (bullet,) = [b for b in promised if b.startswith(words)] or [None]
            assert bullet, f"{exercise.id} trains {words!r}, which is no bullet of its lesson"
            trained.add(bullet)
    assert [bullet for bullet in promised if bullet not in trained] == []


@each_lesson
def test_the_text_of_an_exercise_stands_before_its_cell(lesson):
    there = cells(lesson)
    for id, cell in exercises_of(there).items():
        kind = book.definitions(lesson)[id].kind
        text = there[there.index(cell) - 1]
        assert text.cell_type == "markdown"
        assert text.source.startswith(f"**Exercise {id} · {kind}.** ")


@each_lesson
def test_a_solution_fills_the_gaps_of_its_cell_and_checks_like_it(lesson):
    unsolved = exercises_of(cells(lesson))
    for id, solution in solutions.read(solutions.FOLDER / f"lesson_{lesson}.py").items():
        assert len(solution.why.split()) >= 10, f"{id}: say why"
        assert has_gap(unsolved[id].source)
        assert not has_gap(solution.code)
        assert checks(solution.code) == checks(unsolved[id].source) != []
        assert len(solution.code.splitlines()) <= 30


def has_gap(code):
    return any(isinstance(n, ast.Constant) and n.value is ... for n in ast.walk(ast.parse(code)))


def checks(code):
    """Every call of a check in the code of a cell, as text."""
    calls = [n for n in ast.walk(ast.parse(code)) if isinstance(n, ast.Call)]
    return [ast.unparse(n) for n in calls if getattr(n.func, "attr", "") == "check"]


@each_lesson
def test_solving_a_notebook_changes_nothing_but_the_cells_of_its_exercises(lesson):
    before, solved = cells(lesson), cells(lesson)
    put_solutions_in(solved, NOTEBOOKS[lesson].stem, solutions.FOLDER)
    changed = [a for a, b in zip(before, solved, strict=True) if a.source != b.source]
    assert changed == list(exercises_of(before).values())
