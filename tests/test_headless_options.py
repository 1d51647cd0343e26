"""What is asked for is checked before anything runs; without kernels, so in no time."""

import subprocess
import sys

import pytest
from headless_lab import Lab

from course_utils.headless import __main__ as command
from course_utils.headless import lessons, parameters
from course_utils.headless.errors import UsageError


@pytest.fixture
def lab(tmp_path):
    lab = Lab(tmp_path)
    lab.lesson("02_bfloat16", "1")
    lab.lesson("01_training_loop", "1", parameters="PROFILE = 'auto'\nDEVICES = 0\nWIDTH = 256")
    lab.lesson("10_pipeline", "1")
    (lab.notebooks / "scratch.ipynb").write_text("not a lesson, not even a notebook")
    return lab


def names(lab, *wanted):
    return [x.name for x in lessons.choose(lessons.find(lab.notebooks), list(wanted))]


def values(lab, *assignments, wanted=()):
    chosen = lessons.choose(lessons.find(lab.notebooks), list(wanted))
    return parameters.check(parameters.split(list(assignments)), chosen)


def test_all_lessons_are_chosen_in_reading_order(lab):
    assert names(lab) == ["01_training_loop", "02_bfloat16", "10_pipeline"]


@pytest.mark.parametrize("wanted", ["02", "2", "02_bfloat16", "notebooks/02_bfloat16.ipynb"])
def test_a_lesson_is_chosen_by_number_or_name(lab, wanted):
    assert names(lab, wanted) == ["02_bfloat16"]


def test_chosen_lessons_run_once_each_and_in_reading_order(lab):
    assert names(lab, "10", "01", "1") == ["01_training_loop", "10_pipeline"]


@pytest.mark.parametrize("wanted", ["0", "7", "trainingloop", "01_", "0x1", "-1"])
def test_an_unknown_lesson_is_refused_with_the_lessons_there_are(lab, wanted):
    with pytest.raises(UsageError, match="01_training_loop, 02_bfloat16, 10_pipeline"):
        names(lab, wanted)


def test_a_folder_without_lessons_is_refused(tmp_path):
    with pytest.raises(UsageError, match="No lessons"):
        lessons.find(tmp_path)


def test_a_lesson_needs_exactly_one_parameters_cell(lab):
    lab.lesson("03_none", "1", parameters=None)
    with pytest.raises(UsageError, match="03_none has 0 cells tagged 'parameters'"):
        names(lab)


@pytest.mark.parametrize("source", ["RATE = 1 / 3", "import os", "A = B = 1", "A.b = 1", "A ="])
def test_a_parameters_cell_that_computes_is_refused(lab, source):
    lab.lesson("03_computes", "1", parameters=source)
    with pytest.raises(UsageError, match="03_computes: the parameters cell"):
        names(lab)


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"cells": [1]}', '{"cells": 1}', "\0"])
def test_an_unreadable_notebook_is_refused_by_name(lab, content):
    (lab.notebooks / "03_broken.ipynb").write_text(content)
    with pytest.raises(UsageError, match=r"03_broken\.ipynb is not a readable notebook"):
        names(lab, "3")
    assert names(lab, "1") == ["01_training_loop"]


def test_defaults_are_read_as_python_reads_them(lab):
    source = (
        "# knobs\nPROFILE = 'a=b # c'  # text\nSTEPS: int = 1_000\nRATE = -3e-3\nLIST = [1,\n 2]"
    )
    path = lab.lesson("03_values", "1", parameters=source)
    assert lessons.read(path).defaults == {
        "PROFILE": "a=b # c",
        "STEPS": 1000,
        "RATE": -3e-3,
        "LIST": [1, 2],
    }


def test_parameters_reach_only_the_lessons_that_declare_them(lab):
    assert values(lab, "WIDTH=64", "STEPS=3", "PROFILE=cpu") == {
        "01_training_loop": {"WIDTH": 64, "PROFILE": "cpu"},
        "02_bfloat16": {"STEPS": 3, "PROFILE": "cpu"},
        "10_pipeline": {"STEPS": 3, "PROFILE": "cpu"},
    }


def test_a_misspelt_parameter_is_refused_with_those_each_lesson_has(lab):
    with pytest.raises(UsageError) as caught:
        values(lab, "stpes=3")
    said = str(caught.value)
    assert "no chosen lesson has a parameter stpes. did you mean steps?" in said.lower()
    assert "01_training_loop: PROFILE, DEVICES, WIDTH" in said
    assert "02_bfloat16: PROFILE, DEVICES, STEPS, RATE, SHOW" in said


def test_a_parameter_of_a_lesson_that_is_not_chosen_is_refused(lab):
    with pytest.raises(UsageError, match="WIDTH"):
        values(lab, "WIDTH=64", wanted=["02"])


def test_a_lesson_without_profile_is_refused_where_one_is_given(lab):
    lab.lesson("03_odd", "1", parameters="DEVICES = 0")
    with pytest.raises(UsageError, match="PROFILE is not in the parameters cell of 03_odd"):
        values(lab, "PROFILE=cpu")


PROFILES = "SMALL = {'A': 1}\nPROFILES = {'gpu': SMALL, 'cpu': SMALL | {'A': 2}, 'test': SMALL}\n"
CHOOSES = "config = choose_profile(PROFILE, PROFILES, devices)"


def test_a_misspelt_profile_is_refused_before_anything_runs(lab):
    lab.lesson("03_profiles", "%matplotlib inline", PROFILES + CHOOSES)
    with pytest.raises(UsageError) as caught:
        values(lab, "PROFILE=tets")
    assert str(caught.value) == (
        "PROFILE is 'tets'; 03_profiles has auto, gpu, cpu, test. Did you mean test?"
    )
    for name in ("auto", "gpu", "cpu", "test"):
        assert values(lab, f"PROFILE={name}")["03_profiles"] == {"PROFILE": name}


@pytest.mark.parametrize(
    "source",
    [
        "PROFILES = {**MORE, 'cpu': {}}\n" + CHOOSES,
        "PROFILES = {NAME: {}}\n" + CHOOSES,
        "PROFILES = dict(cpu={})\n" + CHOOSES,
        PROFILES + "PROFILES['mine'] = {}\n" + CHOOSES,
        PROFILES + "PROFILES.update(MORE)\n" + CHOOSES,
        PROFILES + "PROFILES |= MORE\n" + CHOOSES,
        PROFILES + PROFILES + CHOOSES,
        "%time PROFILES = {}",
    ],
)
def test_a_lesson_whose_profiles_cannot_be_read_checks_them_itself(lab, source):
    lab.lesson("03_profiles", source)
    assert values(lab, "PROFILE=mine")["03_profiles"] == {"PROFILE": "mine"}


def test_the_profiles_of_every_lesson_can_be_read():
    found = lessons.choose(lessons.find(lessons.REPOSITORY / "notebooks"), [])
    for lesson in found:
        assert {"gpu", "cpu", "test"} <= set(lesson.profiles), lesson.name


@pytest.mark.parametrize(
    ("assignment", "wanted"),
    [
        ("RATE=1", 1.0),
        ("RATE=1e-3", 1e-3),
        ("DEVICES=-1", -1),
        ("SHOW=True", True),
        ("STEPS=3", 3),
        ("STEPS=bf16", "bf16"),
        ("STEPS=(1, 2)", [1, 2]),
        ("STEPS=", ""),
        ("PROFILE=cpu", "cpu"),
        ("PROFILE='cpu'", "cpu"),
        ("PROFILE=4", "4"),
        ("PROFILE=a=b", "a=b"),
    ],
)
def test_a_value_has_the_type_of_the_default_it_replaces(lab, assignment, wanted):
    (value,) = values(lab, assignment, wanted=["02"])["02_bfloat16"].values()
    assert (value, type(value)) == (wanted, type(wanted))


@pytest.mark.parametrize(
    "assignment",
    [
        *("DEVICES=four", "DEVICES=4.0", "DEVICES=True", "DEVICES=None", "DEVICES="),
        *("RATE=fast", "RATE=nan", "RATE=1e999", "SHOW=1", "SHOW=yes", "SHOW=true"),
    ],
)
def test_a_value_of_another_type_is_refused_with_the_default(lab, assignment):
    name, _, _ = assignment.partition("=")
    with pytest.raises(UsageError, match=rf"{name}=.* needs .*default is"):
        values(lab, assignment)


@pytest.mark.parametrize("text", ["STEPS", "=3", "2X=3", "A-B=1", ""])
def test_what_is_no_assignment_is_refused(text):
    with pytest.raises(UsageError, match="NAME=value"):
        parameters.split([text])


def test_a_parameter_given_twice_must_agree():
    assert parameters.split(["A=1", "A=1"]) == {"A": "1"}
    with pytest.raises(UsageError, match="twice"):
        parameters.split(["A=1", "A=2"])


def test_params_are_split_as_a_shell_does(monkeypatch):
    monkeypatch.setenv("PARAMS", "NAME='a b'  OTHER=\"x=y\"")
    assert command._assignments(command.parse([])) == ["NAME=a b", "OTHER=x=y"]
    with pytest.raises(UsageError, match="No closing quotation"):
        command._assignments(command.parse(["--params", "NAME='a"]))


def test_makes_variables_are_the_defaults_of_the_options(monkeypatch):
    for name, value in {"LESSONS": "01, 02", "PROFILE": "cpu", "DEVICES": "4"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PARAMS", "")
    options = command.parse([])
    assert options.lessons == ["01", "02"]
    assert command._assignments(options) == ["PROFILE=cpu", "DEVICES=4"]
    given = command.parse(["10", "--profile", "test", "--devices", "2"])
    assert (given.lessons, given.profile, given.devices) == (["10"], "test", "2")


@pytest.mark.parametrize("text", ["x", "0", "101", "2.5"])
def test_a_number_of_repeats_that_is_none_is_refused_with_what_it_takes(text, monkeypatch, capsys):
    monkeypatch.setenv("REPEAT", text)
    with pytest.raises(SystemExit):
        command.parse([])
    assert f"REPEAT is {text!r}; it takes a number from 1 to 100" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--cell-timeout=0", "--lesson-timeout=-1", "--cell-timeout=x"])
def test_a_limit_of_no_time_is_refused(option):
    with pytest.raises(SystemExit) as caught:
        command.parse([option])
    assert caught.value.code == 2


@pytest.mark.parametrize(
    "options", [["99"], ["--param", "STPES=1"], ["--devices", "four"], ["--params", "x"]]
)
def test_a_refused_run_exits_with_2_and_leaves_nothing(lab, options):
    status, said = lab.run(*options)
    assert status == 2
    assert said.startswith("error: ")
    assert "Traceback" not in said
    assert not lab.runs.exists()


def test_a_folder_for_runs_that_cannot_be_made_is_refused(lab):
    lab.runs.write_text("a file where the folder should be")
    status, said = lab.run("01")
    assert (status, said.count("\n")) == (2, 1)
    assert f"Cannot create a folder in {lab.runs}" in said
    assert "python -m course_utils.headless --output DIR" in said


def test_the_runner_never_imports_jax():
    code = (
        "import importlib, pkgutil, sys, course_utils.headless as package\n"
        "names = [m.name for m in pkgutil.iter_modules(package.__path__, package.__name__ + '.')]\n"
        "assert len(names) > 10\n"
        "for name in names: importlib.import_module(name)\n"
        "sys.exit('jax' in sys.modules or 'jaxlib' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
