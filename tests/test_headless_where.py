"""The report says at which statement a lesson failed, and which lessons had which devices."""

import pytest
from headless_lab import REPORTS, Lab
from nbformat.v4 import new_code_cell, new_output

from course_utils.headless.failing import failing_line
from course_utils.headless.words import environment_rows, headline

ONE = {"device_count": 1, "device_kind": "cpu", "simulated": False}
TWO = {"device_count": 2, "device_kind": "cpu", "simulated": True}
LATE = """
first = 1
def helper(x):
    return 1 / x

checkpoint(
    "it is late",
    helper(0) == 1,
)
"""
DEVICES = "record_environment('x', device_kind='cpu', device_count={}, simulated={})"


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """Lessons on one and on two devices, and two that fail late in a cell."""
    lab = Lab(tmp_path_factory.mktemp("where"))
    lab.lesson("01_one", REPORTS, DEVICES.format(1, False))
    lab.lesson("02_also", REPORTS, DEVICES.format(1, False), "first = 1\nsecond = first + unknown")
    lab.lesson("04_two", REPORTS, DEVICES.format(2, True), LATE)
    lab.status, lab.said = lab.run()
    return lab


@pytest.mark.parametrize(
    ("name", "cell"),
    [
        ("02_also", "In [4]: second = first + unknown"),
        ("04_two", 'In [4]: checkpoint("it is late", helper(0) == 1)'),
    ],
)
def test_a_failure_quotes_the_statement_that_failed_not_the_first_of_its_cell(lab, name, cell):
    (entry,) = [e for e in lab.results()["notebooks"] if e["name"] == name]
    assert entry["error"]["cell"] == cell
    assert f"{name} failed, {cell}" in lab.said


def test_lessons_on_real_devices_are_not_called_simulated(lab):
    page = (lab.latest / "index.html").read_text(encoding="utf-8")
    assert (
        "1 \u00d7 CPU (lessons 01, 02); "
        "2 \u00d7 CPU, simulated: timings say nothing about speed (lesson 04)"
    ) in page


def cell(source, *traceback, kind="error"):
    if kind != "error":
        return new_code_cell(source, outputs=[new_output("stream", text="Cell In[1], line 1")])
    error = new_output("error", ename="E", evalue="", traceback=list(traceback))
    return new_code_cell(source, outputs=[error])


def test_colours_in_the_traceback_and_deeper_frames_do_not_hide_the_line():
    frames = "Cell \x1b[0;32mIn[3], line 2\x1b[0m", "Cell \x1b[0;32mIn[1], line 1\x1b[0m, in f"
    assert failing_line(cell("a = 1\nf(a)\nb = 2", *frames)) == "f(a)"


def test_the_exception_that_ended_the_cell_counts_not_its_cause():
    told = "Cell In[1], line 2\n\nThe above exception was the direct cause of\nCell In[1], line 4"
    source = "try:\n    first()\nexcept Exception as error:\n    raise Second from error"
    assert failing_line(cell(source, told)) == "raise Second from error"


@pytest.mark.parametrize(
    ("source", "line", "quoted"),
    [
        ("for i in range(3):\n    run(i)", 2, "run(i)"),
        ("for i in broken():\n    run(i)", 1, "for i in broken():"),
        ("%matplotlib nowhere\nx = 1", 1, "%matplotlib nowhere"),
        ("x = (1\ny = 2", 2, "y = 2"),
        ("x = f(" + "a" * 200 + ")", 1, "x = f(" + "a" * 74),
        ("x = 1", 7, None),
    ],
)
def test_a_line_is_quoted_whole_where_it_can_be(source, line, quoted):
    assert failing_line(cell(source, f"Cell In[1], line {line}")) == quoted


def test_a_cell_that_did_not_fail_or_does_not_say_where_quotes_nothing():
    assert failing_line(cell("x", kind="stream")) is None
    assert failing_line(cell("x", "The kernel died (SIGKILL).")) is None


@pytest.mark.parametrize(
    ("lessons", "said"),
    [
        ({"01_a": ONE, "02_b": ONE}, "1 \u00d7 CPU"),
        ({"04_a": TWO}, "2 \u00d7 CPU, simulated: timings say nothing about speed"),
        (
            {"01_a": ONE, "02_b": ONE, "03_c": ONE, "04_d": TWO, "05_e": TWO, "10_f": ONE},
            "1 \u00d7 CPU (lessons 01 to 03, 10); "
            "2 \u00d7 CPU, simulated: timings say nothing about speed (lessons 04, 05)",
        ),
    ],
)
def test_devices_are_told_for_the_lessons_that_had_them(lessons, said):
    environment = {**list(lessons.values())[-1], "lesson_devices": lessons}
    assert dict(environment_rows(environment))["Devices"] == said
    assert headline(environment)[0] == said.replace(": timings say nothing about speed", "")


def test_a_run_kept_by_an_earlier_version_still_has_its_devices():
    assert dict(environment_rows(dict(TWO)))["Devices"].startswith("2 \u00d7 CPU, simulated")
