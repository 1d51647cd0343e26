"""Two runs compared: the same code is equal, a slowdown and a failed checkpoint are found."""

import copy
import json
import re

import html5lib
import pytest
from headless_lab import REPORTS, Lab

from course_utils.headless import compare, comparison, differences
from course_utils.headless.direction import better
from course_utils.headless.repeats import merged, not_run

pytestmark = pytest.mark.any_python


def lesson(name="01_good", status="passed", seconds=10.0, checkpoints=(True,), **figures):
    """The entry of one attempt; a figure is value or (value, unit)."""
    results = {}
    for key, figure in figures.items():
        value, unit = figure if isinstance(figure, tuple) else (figure, "")
        results[key.replace("_", " ")] = {"value": value, "unit": unit}
    checks = [{"name": f"check {n}", "passed": p} for n, p in enumerate(checkpoints)]
    return not_run(name) | {
        "status": status,
        "seconds": seconds,
        "peak_memory_mb": 300.0,
        "checkpoints": checks,
        "results": results,
    }


def repeated(*attempts):
    return merged(list(attempts)) | {"repeats": list(attempts)}


def run(*lessons, parameters=None, **environment):
    facts = {"started": "2026-01-01T00:00:00+00:00", "python": "3.11.7", **environment}
    return {"parameters": parameters or {}, "environment": facts, "notebooks": list(lessons)}


@pytest.fixture
def keep(tmp_path):
    """Write a run's results.json; returns its folder."""

    def write(name, results):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "results.json").write_text(json.dumps(results))
        return folder

    return write


@pytest.fixture
def compared(keep, capsys):
    """Compare two runs by the command line; returns status, text and page."""

    def command(a, b, *options):
        folders = [keep("a", a), keep("b", b)]
        status = compare.main([*map(str, folders), *options])
        page = (folders[1] / "compared-with-a.html").read_text(encoding="utf-8")
        html5lib.HTMLParser(strict=True).parse(page)
        return status, capsys.readouterr().out, page

    return command


def verdict(a, b, threshold=0.1, name=None):
    """The change of the one figure beside time and memory."""
    changes = differences.figures(run(a), run(b), threshold)
    rest = [c for c in changes if c.name not in ("lesson time", "peak memory")]
    (change,) = [c for c in changes if c.name == name] if name else rest
    return change.verdict, change.regression


def test_a_run_is_equal_to_itself(compared):
    results = run(lesson(speed=(100.0, "examples/s"), loss=0.5, rows=3, word="a"))
    status, said, page = compared(results, results)
    assert status == 0
    assert "Equal: no figure differs beyond its spread, and no status changed." in said
    assert "Equal: no figure differs" in page
    assert "REGRESSION" not in said


def test_a_slowdown_by_two_is_found_even_if_each_ran_once(compared):
    a, b = (run(lesson(speed=(v, "examples/s"), time=(t, "ms"))) for v, t in [(100, 5), (50, 10)])
    status, said, page = compared(a, b)
    assert status == 1
    assert "2 regressions beyond 10%." in said
    assert re.search(r"speed +100 examples/s +50 examples/s +0\.50 +~50% +worse  REGRESSION", said)
    assert re.search(r"time +5 ms +10 ms +2\.00 +~50% +worse  REGRESSION", said)
    assert "worse: regression" in page


def test_a_checkpoint_that_fails_now_is_a_regression(compared):
    status, said, page = compared(
        run(lesson(checkpoints=(True, True))),
        run(lesson(status="failed", checkpoints=(True, False))),
    )
    assert status == 1
    assert re.search(r"01_good +passed +failed +REGRESSION", said)
    assert re.search(r"01_good: check 1 +passed +failed +REGRESSION", said)
    assert "01_good: check 1" in page


def test_what_gets_better_or_appears_is_no_regression(compared):
    a = run(lesson(status="failed", checkpoints=(False,)), lesson("02_old"))
    b = run(lesson(checkpoints=(True,), speed=(1.0, "x/s")), lesson("03_new"))
    status, said, page = compared(a, b)
    assert status == 0
    assert re.search(r"02_old +passed +not in this run$", said, re.MULTILINE)
    assert re.search(r"03_new +not in this run +passed$", said, re.MULTILINE)
    assert "No regression beyond 10%" in said
    assert "marked below. Not compared, since B lacks 02_old." in said
    assert "Not compared, since B lacks 02_old." in page


def test_times_of_different_profiles_are_not_compared_and_that_is_said_once(compared):
    figures = {"speed": [(100.0, "x/s"), (1.0, "x/s")], "step": [(1.0, "ms"), (90.0, "ms")]}
    a, b = (
        run(
            lesson(seconds=(5.0, 80.0)[i], loss=0.5, **{name: f[i] for name, f in figures.items()}),
            parameters={"PROFILE": ("test", "cpu")[i]},
        )
        for i in (0, 1)
    )
    status, said, page = compared(a, b)
    assert status == 0
    reason = "A ran in the profile test, B in cpu: their times, rates and memory are not compared."
    assert said.count(reason) == page.count(reason) == 1
    for name in ("lesson time", "peak memory", "speed", "step"):
        assert re.search(rf"{name} .* not compared$", said, re.MULTILINE), name
    assert re.search(r"loss .* equal$", said, re.MULTILINE)
    assert "REGRESSION" not in said


def test_other_figures_of_different_profiles_still_count(compared):
    runs = [
        run(lesson(accuracy=a), parameters={"PROFILE": p}) for a, p in [(0.9, "cpu"), (0.1, "test")]
    ]
    status, said, _ = compared(*runs)
    assert status == 1
    assert re.search(r"accuracy .* worse  REGRESSION", said)


@pytest.mark.parametrize(
    ("given", "backend", "profile"),
    [("auto", "cpu", "cpu"), ("auto", "gpu", "gpu"), ("test", "cpu", "test"), (None, "cpu", "cpu")],
)
def test_the_profile_auto_is_the_one_that_the_devices_decide(given, backend, profile):
    parameters = {"PROFILE": given} if given else {}
    assert differences.profile(run(parameters=parameters, backend=backend)) == profile


def test_an_explicit_profile_that_auto_would_have_taken_is_the_same(compared):
    a = run(lesson(time=(5, "ms")), backend="cpu")
    b = run(lesson(time=(50, "ms")), parameters={"PROFILE": "cpu"}, backend="cpu")
    status, said, _ = compared(a, b)
    assert status == 1
    assert "are not compared" not in said


def test_runs_without_a_common_lesson_are_not_called_free_of_regressions(keep, capsys):
    folders = [keep("a", run(lesson("01_a"))), keep("b", run(lesson("02_b")))]
    assert compare.main(list(map(str, folders))) == 2
    said = capsys.readouterr()
    assert "Nothing could be compared" in said.err
    assert "A has 01_a; B has 02_b." in said.err
    assert said.out == ""


def test_a_change_within_the_spread_of_repeats_is_no_difference():
    noisy = repeated(*(lesson(speed=(v, "x/s")) for v in (90.0, 100.0, 112.0)))
    slower = repeated(*(lesson(speed=(v, "x/s")) for v in (75.0, 82.0, 88.0)))
    assert verdict(noisy, slower) == ("within spread", False)


def test_a_small_change_beyond_a_small_spread_is_a_difference_but_not_yet_a_regression():
    steady = repeated(*(lesson(speed=(v, "x/s")) for v in (99.9, 100.0, 100.1)))
    slower = repeated(*(lesson(speed=(v, "x/s")) for v in (94.9, 95.0, 95.1)))
    assert verdict(steady, slower) == ("worse", False)
    assert verdict(steady, slower, threshold=0.02) == ("worse", True)
    assert verdict(slower, steady) == ("better", False)


def test_the_threshold_can_be_set(compared, keep, monkeypatch):
    a, b = (run(lesson(speed=(v, "x/s"))) for v in (100, 40))
    assert compared(a, b, "--threshold", "200%")[0] == 0
    monkeypatch.setenv("THRESHOLD", "0.5")
    folders = [str(keep("c", a)), str(keep("d", b))]
    assert compare.main(folders) == 1
    monkeypatch.setenv("THRESHOLD", "5")
    assert compare.main(folders) == 0


@pytest.mark.parametrize("text", ["-1", "ten", "nan", "%"])
def test_a_threshold_that_is_none_is_refused_with_what_it_takes(text, monkeypatch, capsys):
    monkeypatch.setenv("THRESHOLD", text)
    with pytest.raises(SystemExit):
        compare.main(["a", "b"])
    said = capsys.readouterr().err
    assert f"THRESHOLD is {text!r}; it takes a fraction such as 0.1, or 10%" in said


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ({"collectives": 1}, {"collectives": 2}, ("changed", False)),
        ({"compiles": 0}, {"compiles": 1}, ("worse", True)),
        ({"test_accuracy": 0.88}, {"test_accuracy": 0.60}, ("worse", True)),
        ({"test_accuracy": 0.88}, {"test_accuracy": 0.86}, ("within spread", False)),
        ({"loss": 0.5}, {"loss": 0.4}, ("better", False)),
        ({"sent": (1.0, "MB")}, {"sent": (2.0, "MB")}, ("worse", True)),
        ({"word": "a"}, {"word": "b"}, ("changed", False)),
        ({"loss": 0.5}, {"loss": "nan"}, ("changed", False)),
        ({"loss": 0.5}, {}, ("only in A", False)),
        ({}, {"loss": 0.5}, ("only in B", False)),
        ({"change": -1.0}, {"change": 1.0}, ("changed", False)),
        ({"fine": True}, {"fine": False}, ("changed", False)),
    ],
)
def test_each_kind_of_figure_is_judged_by_its_kind(a, b, expected):
    assert verdict(lesson(**a), lesson(**b)) == expected


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [(1.0, 1.9, "within spread"), (30.0, 44.0, "within spread"), (30.0, 61.0, "worse")],
)
def test_the_time_of_a_lesson_counts_too_but_not_how_long_a_kernel_starts(before, after, expected):
    found = verdict(lesson(seconds=before), lesson(seconds=after), name="lesson time")
    assert found == (expected, expected == "worse")


def test_attempts_that_failed_do_not_lend_their_figures():
    flaky = repeated(lesson(speed=(100.0, "x/s")), lesson(status="failed", seconds=0.1))
    (time, *_) = differences.figures(run(lesson()), run(flaky), 0.1)
    assert (time.a, time.b) == (10.0, 10.0)


def test_versions_devices_and_parameters_that_differ_are_listed(compared):
    a = run(lesson(), jax="0.10.2", device_count=1, git_commit="a" * 40)
    b = run(lesson(), jax="0.12.0", device_count=2, git_commit="b" * 40, parameters={"SIZE": 4})
    _, said, page = compared(a, b)
    assert re.search(r"jax +0\.10\.2 +0\.12\.0", said)
    assert re.search(r"SIZE +- +4", said)
    assert "They ran with different device_count, SIZE: that alone may be why." in said
    assert "started" not in said
    assert "0.12.0" in page


def test_what_is_recorded_cannot_become_markup(compared):
    bad = "<script>alert(1)</script>"
    a, b = run(lesson(word=bad), cpu=bad), run(lesson(word="b"), lesson(bad))
    _, _, page = compared(a, b)
    assert "<script" not in page


def test_folders_without_a_run_are_refused(tmp_path, capsys, monkeypatch):
    monkeypatch.delenv("A", raising=False)
    assert compare.main([str(tmp_path), str(tmp_path)]) == 2
    assert compare.main([]) == 2
    (tmp_path / "results.json").write_text("{")
    assert compare.main([str(tmp_path), str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert "holds no run" in said
    assert "make compare A=runs/x B=runs/y" in said
    assert "cannot be read" in said


def test_a_folder_that_does_not_exist_is_named_as_it_was_given(keep, capsys):
    there = str(keep("a", run(lesson())))
    assert compare.main([there, "runs/no-such-run"]) == 2
    assert capsys.readouterr().err == "error: The folder runs/no-such-run does not exist.\n"


@pytest.mark.parametrize(
    ("name", "unit", "expected"),
    [
        ("throughput", "examples/s", "higher"),
        ("matmul", "GFLOP/s", "higher"),
        ("step time", "ms", "lower"),
        ("step", "ms/step", "lower"),
        ("sent", "MB", "lower"),
        ("sent", "KiB/step", "lower"),
        ("test accuracy", "", "higher"),
        ("weak scaling efficiency", "", "higher"),
        ("final training loss", "", "lower"),
        ("prediction error, 1 device(s)", "", "lower"),
        ("batch size", "", ""),
        ("spread", "", ""),
    ],
)
def test_the_better_way_follows_from_unit_and_name(name, unit, expected):
    assert better(name, unit) == expected


def test_runs_of_the_same_code_are_equal_and_planted_faults_are_found(tmp_path):
    """The whole way: lessons, runner with repeats, command."""
    lab = Lab(tmp_path)
    lab.lesson(
        "01_good",
        REPORTS,
        "import time\nsince = time.perf_counter()\ntime.sleep(0.2)\n"
        "record('step time', 1000 * (time.perf_counter() - since), unit='ms')",
        "checkpoint('all is well', True)",
    )
    folders = []
    for _ in range(2):
        lab.run("--repeat", "3")
        folders.append(lab.latest)
    source = (lab.notebooks / "01_good.ipynb").read_text()
    for old, new in (("sleep(0.2)", "sleep(0.4)"), ("'all is well', True", "'all is well', False")):
        (lab.notebooks / "01_good.ipynb").write_text(source.replace(old, new))
        lab.run("--repeat", "3")
        folders.append(lab.latest)
    same, again, slow, broken = folders
    found = comparison.compared(same, again, 0.1)
    assert (found["regressions"], found["beyond"], found["statuses"]) == (0, 0, [])
    assert compare.main([str(same), str(again)]) == 0
    assert compare.main([str(same), str(slow)]) == 1
    assert compare.main([str(same), str(broken)]) == 1
    changes = {c.name: c for c in comparison.compared(same, slow, 0.1)["changes"]}
    assert changes["step time"].regression
    assert 1.7 < changes["step time"].ratio < 2.3
    assert copy.copy(changes["step time"]).bar[1] > 40
