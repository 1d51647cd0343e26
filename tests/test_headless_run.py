"""One run over good and bad lessons, and what it leaves for people and for machines."""

import json
import os
import re
import sys

import nbformat
import pytest
from headless_lab import REPORTS, Lab, alive, pids, until

pytestmark = pytest.mark.any_python

FOUR_KINDS_OF_CHILDREN = """
import os, subprocess, sys, time
sleep = [sys.executable, "-c", "import time; time.sleep(600)"]
children = [
    subprocess.Popen(sleep),
    subprocess.Popen(sleep, start_new_session=True),
    subprocess.Popen(sleep, start_new_session=True, env={}),
]
orphan = subprocess.run("sleep 600 >/dev/null 2>&1 & echo $!", shell=True, capture_output=True)
for number, pid in enumerate([child.pid for child in children] + [int(orphan.stdout)]):
    open(f"child-{number}.pid", "w").write(str(pid))
time.sleep(1)  # some looks at the process tree
"""
SEES = """
import json, pathlib
seen = json.loads(pathlib.Path(RESULTS).read_text())["notebooks"]
report("record", name="seen", value=[lesson["status"] for lesson in seen], unit="")
"""
GOOD = """
import os, sys
checkpoint("it adds up", 1 + 1 == 2, "unused")
report("record", name="given", value=[PROFILE, DEVICES, STEPS, RATE, SHOW], unit="")
report("record", name="nan", value=float("nan"), unit="loss")
report("record", name="python", value=sys.executable, unit="")
report("record", name="cwd", value=os.getcwd(), unit="")
report("record", name="env", value=dict(os.environ), unit="")
record("speed", 1234.5, unit="examples/s")
record_environment("Grüße", backend="none", greeting="Grüße")
"""
MEMORY = "big = bytearray(300_000_000); big[::4096] = b'x' * len(big[::4096]); del big"
CHILD_MEMORY = """
import subprocess, sys
code = "import time; big = b'x' * 300_000_000; time.sleep(0.5)"
subprocess.run([sys.executable, "-c", code])
"""
STUCK = "import ctypes, signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
STUCK += "ctypes.PyDLL(None).sleep(600)  # C code that holds the interpreter's lock"


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """Ten lessons, run once; each test reads the part that is its own."""
    lab = Lab(tmp_path_factory.mktemp("braces {in} the path"))
    results = lab.runs / "latest" / "results.json"
    lab.lesson("01_good", REPORTS, GOOD, MEMORY, "1 + 1")
    lab.lesson("02_raises", f"RESULTS = {str(results)!r}", REPORTS + SEES, "1 / 0", "print(2)")
    lab.lesson("03_checkpoint", REPORTS, "checkpoint('loss falls', False, 'Lower RATE.')")
    lab.lesson("04_swallowed", REPORTS, "try:\n  checkpoint('x', False)\nexcept Exception:\n  pass")
    lab.lesson("05_killed", FOUR_KINDS_OF_CHILDREN + "os.kill(os.getpid(), 9)")
    lab.lesson("06_stuck", "print('before')", STUCK, "print('after')")
    lab.lesson("07_exits", CHILD_MEMORY, "import sys; sys.exit()", "1")
    lab.lesson("08_empty")
    lab.lesson("09_leaves_children", FOUR_KINDS_OF_CHILDREN.replace("child-", "left-"), "1")
    lab.lesson("10_aborts", "import os; os.abort()")
    home = lab.place / "home"
    other = home / ".local/share/jupyter/kernels/python3"
    other.mkdir(parents=True)
    spec = {"argv": ["/bin/false"], "display_name": "Python 3", "language": "python"}
    (other / "kernel.json").write_text(json.dumps(spec))
    startup = home / ".ipython/profile_default/startup"
    startup.mkdir(parents=True)
    (startup / "0.py").write_text("import os; os._exit(3)")
    # As outside a virtual environment, where a user's own kernels come first.
    lab.env = {
        "HOME": str(home),
        "JUPYTER_PREFER_ENV_PATH": "0",
        "LESSONS": "",
        "PROFILE": "cpu",
        "PARAMS": "STEPS=3 RATE=1",
    }
    lab.status, lab.said = lab.run("--cell-timeout", "4", env=lab.env)
    return lab


@pytest.fixture
def entry(lab):
    return {lesson["name"]: lesson for lesson in lab.results()["notebooks"]}


def test_a_lesson_that_fails_leaves_the_others_running(entry):
    assert {name: lesson["status"] for name, lesson in entry.items()} == {
        "01_good": "passed",
        "02_raises": "failed",
        "03_checkpoint": "failed",
        "04_swallowed": "failed",
        "05_killed": "failed",
        "06_stuck": "timeout",
        "07_exits": "failed",
        "08_empty": "failed",
        "09_leaves_children": "passed",
        "10_aborts": "failed",
    }


def test_a_run_with_a_failure_exits_with_1(lab):
    assert lab.status == 1


def test_results_hold_what_the_design_promises(lab):
    results = lab.results()
    assert list(results) == ["parameters", "environment", "notebooks"]
    assert results["parameters"] == {"PROFILE": "cpu", "STEPS": 3, "RATE": 1.0}
    environment = results["environment"]
    assert environment["greeting"] == "Grüße"
    assert environment["python"].startswith(f"{sys.version_info.major}.")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", environment["started"])
    assert {"git_commit", "git_dirty"} <= set(environment)
    assert set(results["notebooks"][0]) == {
        *("name", "status", "seconds", "cell_seconds", "peak_memory_mb", "error"),
        *("checkpoints", "exercises", "results"),
    }


def test_parameters_take_effect_in_the_lesson(entry):
    assert entry["01_good"]["results"]["given"]["value"] == ["cpu", 0, 3, 1.0, False]


def test_reports_of_a_lesson_are_collected(entry):
    good = entry["01_good"]
    assert good["checkpoints"] == [{"name": "it adds up", "passed": True, "detail": ""}]
    assert good["results"]["speed"] == {"value": 1234.5, "unit": "examples/s"}
    assert good["results"]["nan"] == {"value": "nan", "unit": "loss"}
    assert good["error"] is None


def test_each_executed_cell_is_timed(entry):
    good = entry["01_good"]
    assert len(good["cell_seconds"]) == 6  # parameters, injected parameters, four more
    assert 0 < sum(good["cell_seconds"]) < good["seconds"]


def test_a_short_peak_of_memory_is_seen(entry):
    assert 330 < entry["01_good"]["peak_memory_mb"] < 600
    assert entry["02_raises"]["peak_memory_mb"] < 250


def test_the_memory_of_processes_that_a_lesson_starts_counts(entry):
    assert 330 < entry["07_exits"]["peak_memory_mb"] < 600


def test_the_kernel_is_this_python_whatever_the_user_has_installed(lab, entry):
    assert entry["01_good"]["results"]["python"]["value"] == sys.executable


def test_the_kernel_runs_in_the_folder_of_its_notebook(lab, entry):
    assert entry["01_good"]["results"]["cwd"]["value"] == str(lab.notebooks)


def test_the_kernel_gets_an_environment_without_the_runners_options(entry):
    env = entry["01_good"]["results"]["env"]["value"]
    assert env["XLA_PYTHON_CLIENT_PREALLOCATE"] == "false"
    assert not {"LESSONS", "PROFILE", "DEVICES", "PARAMS", "PYTEST_CURRENT_TEST"} & set(env)


def test_results_are_true_while_the_run_goes_on(entry):
    seen = entry["02_raises"]["results"]["seen"]["value"]
    assert seen == ["passed", "running"] + ["not run"] * 8


def test_an_error_is_reported_with_its_cell(entry):
    assert entry["02_raises"]["error"] == {
        "cell": "In [5]: 1 / 0",
        "message": "ZeroDivisionError: division by zero",
        "hint": "",
    }
    assert len(entry["02_raises"]["cell_seconds"]) == 5


def test_a_failed_checkpoint_is_reported_with_its_hint(entry):
    error = entry["03_checkpoint"]["error"]
    assert error["message"] == "CheckpointFailed: loss falls"
    assert error["hint"] == "Lower RATE."


def test_a_failed_checkpoint_fails_the_lesson_even_if_it_raised_nothing(entry):
    assert entry["04_swallowed"]["error"]["message"] == "Checkpoint 'x' did not pass."


def test_a_killed_kernel_is_reported_as_dead_with_a_hint(entry):
    error = entry["05_killed"]["error"]
    assert error["message"] == "The kernel died (SIGKILL)."
    assert "out of memory" in error["hint"]


def test_a_kernel_that_crashes_is_told_from_one_that_was_killed(entry):
    error = entry["10_aborts"]["error"]
    assert error["message"].startswith("The kernel died (SIGABRT).")
    assert "DEVICES" in error["hint"]


def test_a_cell_that_never_ends_is_a_timeout_even_if_it_heeds_no_interrupt(entry):
    error = entry["06_stuck"]["error"]
    assert error["cell"] == "In [4]: import ctypes, signal"
    assert error["message"] == "The cell ran longer than 4 s and was stopped."
    assert "--cell-timeout" in error["hint"]
    assert entry["06_stuck"]["seconds"] < 20


def test_a_lesson_that_ends_itself_early_has_not_passed(entry):
    assert "after 4 of 5 code cells" in entry["07_exits"]["error"]["message"]


def test_a_lesson_that_produced_nothing_has_not_passed(entry):
    assert "produced nothing" in entry["08_empty"]["error"]["message"]


def test_no_process_of_a_kernel_is_left(lab):
    left = pids(lab.notebooks)
    assert len(left) == 8
    assert [pid for pid in left if alive(pid)] == []


def test_every_lesson_leaves_notebook_and_page_even_where_it_broke_off(lab):
    for path in lab.notebooks.glob("*.ipynb"):
        nbformat.validate(nbformat.read(lab.latest / path.name, as_version=4))
        assert "</html>" in (lab.latest / f"{path.stem}.html").read_text(encoding="utf-8")
    assert "before" in (lab.latest / "06_stuck.html").read_text(encoding="utf-8")
    assert "The kernel died (SIGKILL)" in (lab.latest / "05_killed.html").read_text("utf-8")


def test_a_page_needs_no_network(lab):
    page = (lab.latest / "01_good.html").read_text(encoding="utf-8")
    assert "<title>01_good</title>" in page
    assert not re.findall(r"<script|<link|@import|src=.http|url\(.?http", page)


def test_only_finished_files_are_left_in_the_run(lab):
    kept = {path.name for path in lab.latest.iterdir()}
    stems = {path.stem for path in lab.notebooks.glob("*.ipynb")}
    wanted = {f"{stem}.{kind}" for stem in stems for kind in ("ipynb", "html")}
    assert kept == {"results.json", "index.html", *wanted}
    assert {path.name for path in lab.runs.iterdir()} == {"latest", lab.latest.name}
    assert os.readlink(lab.runs / "latest") == lab.latest.name


def test_a_log_stays_short(lab):
    lines = lab.said.splitlines()
    assert len(lines) < 10 * 9
    assert not re.search(r"Traceback|\x1b|\r|Warning", lab.said)


def test_the_last_lines_name_each_failure_and_where_to_look(lab):
    assert re.search(r"^01_good +passed +\d+\.\d +1/1 +\d+$", lab.said, re.MULTILINE)
    assert "03_checkpoint failed, In [4]: checkpoint('loss falls', False, 'Lower" in lab.said
    assert "  Hint: Lower RATE.\n" in lab.said
    assert f"Results: {lab.latest}\n" in lab.said


def test_a_run_in_which_all_passes_exits_with_0(tmp_path):
    lab = Lab(tmp_path)
    lab.lesson("01_good", "1")
    lab.lesson("02_bad", "1 / 0")
    status, said = lab.run("1", "--param", "STEPS='two words'")
    assert (status, said.count("\n")) == (0, 8)
    assert [x["name"] for x in lab.results()["notebooks"]] == ["01_good"]
    assert lab.results()["parameters"] == {"STEPS": "two words"}


def test_in_a_terminal_one_line_shows_the_cell_and_the_checkpoints(tmp_path):
    lab = Lab(tmp_path)
    lab.lesson("01_good", REPORTS, "checkpoint('a', True)", "import time; time.sleep(1)")
    screen, terminal = os.openpty()
    runner = lab.start(stdout=terminal, stderr=terminal, env={"TERM": "xterm", "COLUMNS": "80"})
    os.close(terminal)
    said = b""
    while chunk := _read(screen):
        said += chunk
    assert runner.wait(timeout=30) == 0
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", said.decode())
    assert re.search(r"\[1/1\] 01_good  \d:\d\d  cell 4/4, 1 checkpoints passed", text)
    assert re.search(r"\[1/1\] 01_good passed in \d", text)


def _read(screen):
    try:
        return os.read(screen, 4096)
    except OSError:  # how Linux says that the other side was closed
        return b""


def test_two_runs_at_the_same_time_keep_their_own_results(tmp_path):
    lab = Lab(tmp_path)
    wait = "import pathlib, time\npathlib.Path(f'{STEPS}.here').touch()\n"
    wait += "while len(list(pathlib.Path('.').glob('*.here'))) < 2: time.sleep(0.01)\n"
    lab.lesson("01_meets", REPORTS, wait, "report('record', name='me', value=STEPS, unit='')")
    both = [lab.start("--param", f"STEPS={number}") for number in (1, 2)]
    said = [runner.communicate(timeout=60)[0] for runner in both]
    assert [runner.returncode for runner in both] == [0, 0]
    for number, text in enumerate(said, start=1):
        folder = lab.runs / re.search(r"Results: .*/(\S+)", text)[1]
        (lesson,) = lab.results(folder)["notebooks"]
        assert lesson["results"]["me"]["value"] == number
    until(lambda: lab.latest.exists())
