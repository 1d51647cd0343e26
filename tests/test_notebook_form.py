"""Every lesson is committed in the one form that `make notebooks` gives it."""

import pytest

from course_utils.headless import lessons
from course_utils.headless.form import problems

NOTEBOOKS = sorted((lessons.REPOSITORY / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_is_in_committed_form(path):
    assert problems(path.read_text(encoding="utf-8")) == [], "run: make notebooks"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_is_a_lesson_with_the_parameters_that_every_lesson_has(path):
    defaults = lessons.read(path).defaults
    assert (defaults["PROFILE"], defaults["DEVICES"]) == ("auto", 0)
