"""The map and the plan of the course are read from the lessons, so they cannot go stale."""

import re

import pytest
from headless_lab import Lab, lesson

from course_utils.headless import lessons, plan
from course_utils.headless.course_map import Described, describe, described, show_map

pytestmark = pytest.mark.any_python

FIRST = """# 03 · A <title> & more

A promise.

**Time:** 25 minutes to read and try, about a minute to run. **Needs:** lesson 01, read
once. Two GPUs are used if there are any.

You will
"""


@pytest.fixture
def path(tmp_path):
    path = lesson(tmp_path, "03_name", "1")
    text = path.read_text().replace('"# 03_name"', repr(FIRST).replace("'", '"'))
    assert "promise" in text
    path.write_text(text)
    return path


def test_a_lesson_describes_itself(path):
    assert describe(path) == Described(
        "03_name", "03 · A <title> & more", 25, "lesson 01, read once"
    )


@pytest.mark.parametrize("content", ["", "{}", '{"cells": []}', '{"cells": [{"source": "text"}]}'])
def test_what_describes_nothing_is_still_on_the_map(tmp_path, content):
    path = tmp_path / "03_name.ipynb"
    path.write_text(content)
    assert describe(path) == Described("03_name", "03_name", None, "")


def test_the_map_has_every_lesson_that_exists_with_its_time_and_needs():
    found = {one.name: one for one in described()}
    assert list(found) == list(lessons.find(lessons.REPOSITORY / "notebooks"))
    for one in found.values():
        assert one.title.startswith(f"{one.name[:2]} · ")
        assert one.minutes
        assert one.needs


def test_the_map_is_shown(capsys):
    assert show_map() == described()
    said = capsys.readouterr().out
    assert "01 · The training loop  (40 min; needs: nothing beforehand)" in said


def test_the_plan_has_estimates_and_what_a_run_measured(path, tmp_path):
    lab = Lab(tmp_path)
    lab.lesson("03_name", "1")
    lab.run()
    lines = plan.table(lab.latest, path.parent)
    assert re.fullmatch(r"03 · A <title> & more +25 min +\d\.\d s", lines[1])
    assert re.fullmatch(r"together +0 h 25 min +\d\.\d s", lines[2])
    assert lines[-1].startswith(f"Machine: {lab.latest.name}, ")


def test_the_plan_says_with_what_the_run_was_turned(path, tmp_path):
    lab = Lab(tmp_path)
    lab.lesson("03_name", "1")
    lab.run("--profile", "test", "--param", "STEPS=3")
    assert plan.table(lab.latest, path.parent)[-1] == (
        "It ran with STEPS=3, PROFILE=test: a class that doesn't will need other times."
    )


def test_a_plan_of_no_run_is_refused(tmp_path, capsys):
    assert plan.main([str(tmp_path)]) == 2
    assert "holds no run" in capsys.readouterr().err


def test_the_workshop_plans_use_the_estimates_of_the_lessons():
    text = (lessons.REPOSITORY / "INSTRUCTORS.md").read_text(encoding="utf-8")
    minutes = {one.name[:2]: one.minutes for one in described()}
    planned = re.findall(r"^\| [\d:]+ \| lesson (\d\d)\b[^|]*\| (\d+) \|$", text, re.MULTILINE)
    assert len(planned) >= 10
    assert {number: int(given) for number, given in planned} == {
        number: minutes[number] for number, _ in planned
    }


@pytest.mark.parametrize("heading", ["Half a day", "One day"])
def test_the_times_of_a_workshop_plan_add_up(heading):
    text = (lessons.REPOSITORY / "INSTRUCTORS.md").read_text(encoding="utf-8")
    section = text.split(f"## {heading}\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (\d+):(\d\d) \|[^|]*\| (\d*)", section, re.MULTILINE)
    starts = [60 * int(hours) + int(minutes) for hours, minutes, _ in rows]
    lengths = [int(length) for *_, length in rows if length]
    assert starts == [starts[0] + sum(lengths[:n]) for n in range(len(starts))]
