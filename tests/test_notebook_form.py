"""Every lesson is committed in the one form that `make notebooks` gives it."""

import re
import subprocess
import sys

import pytest

from course_utils.headless import lessons, navigation
from course_utils.headless.form import canonical, load, problems

NOTEBOOKS = sorted((lessons.REPOSITORY / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_is_in_committed_form(path):
    assert problems(path.read_text(encoding="utf-8")) == [], "run: make notebooks"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_is_a_lesson_with_the_parameters_that_every_lesson_has(path):
    defaults = lessons.read(path).defaults
    assert (defaults["PROFILE"], defaults["DEVICES"]) == ("auto", 0)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_lesson_links_to_its_neighbours_and_the_first_links_to_all(path):
    text = path.read_text(encoding="utf-8")
    known = navigation.titles(path.parent)
    assert canonical(navigation.complete(text, path, known)) == text, "run: make notebooks"
    names = list(known)
    here = names.index(path.stem)
    wanted = names[1:] if here == 0 else [names[0], *names[here - 1 : here], *names[here + 1 :][:1]]
    for cell in (markdown(text)[0], markdown(text)[-1]):
        assert all(f"]({name}.ipynb)" in cell for name in wanted)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_link_between_lessons_leads_somewhere(path):
    links = re.findall(r"\]\(([^)#:]+\.ipynb)", "\n".join(markdown(path.read_text("utf-8"))))
    assert links
    assert [link for link in links if not (path.parent / link).is_file()] == []


def test_a_lesson_in_a_python_without_the_course_says_what_to_do(tmp_path):
    bare = [sys.executable, "-I", "-S", "-c", navigation.FIND_THE_COURSE]
    ran = subprocess.run(bare, cwd=tmp_path, capture_output=True, text=True)
    assert ran.returncode == 1
    assert "make lab" in ran.stderr.splitlines()[-1]
    assert "During handling" not in ran.stderr


def markdown(text):
    return [c["source"] for c in load(text)["cells"] if c["cell_type"] == "markdown"]
