"""Ends that nobody plans: signals, limits, a full disk. Nothing hangs, nothing is left."""

import errno
import os
import resource
import signal
import tempfile
from pathlib import Path

import pytest
from headless_lab import Lab, alive, pids, until

from course_utils.atomic import write_atomically
from course_utils.headless.folder import Folder

pytestmark = pytest.mark.any_python

# Leaves the numbers of its kernel and of a child, then heeds no interrupt.
ENDLESS = """
import os, pathlib, signal, subprocess, sys, time
signal.signal(signal.SIGINT, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
pathlib.Path("child.pid").write_text(str(child.pid))
pathlib.Path("kernel.pid").write_text(str(os.getpid()))
print("working")
while True: time.sleep(0.1)
"""


@pytest.fixture
def lab(tmp_path):
    lab = Lab(tmp_path)
    lab.lesson("01_endless", "print('first')", ENDLESS, "print('last')")
    lab.lesson("02_next", "1")
    return lab


def at_work(lab):
    kernel = lab.notebooks / "kernel.pid"
    until(lambda: kernel.exists() and kernel.read_text())


@pytest.mark.parametrize(
    ("signals", "status"),
    [([signal.SIGINT], 130), ([signal.SIGINT] * 3, 130), ([signal.SIGTERM], 143)],
    ids=["ctrl-c", "ctrl-c again and again", "terminated"],
)
def test_a_signal_ends_the_run_cleanly_within_seconds(lab, signals, status):
    runner = lab.start()
    at_work(lab)
    for number in signals:
        runner.send_signal(number)
        until(lambda: not any(map(alive, pids(lab.notebooks))))
    said, _ = runner.communicate(timeout=10)
    assert runner.returncode == status
    first, second = lab.results()["notebooks"]
    assert (first["status"], second["status"]) == ("interrupted", "not run")
    assert first["error"]["message"] == f"Stopped by {signals[0].name}."
    assert "first" in (lab.latest / "01_endless.html").read_text(encoding="utf-8")
    assert "Traceback" not in said
    assert f"Results: {lab.latest}" in said


def test_a_signal_while_the_kernel_starts_ends_the_run_too(lab):
    runner = lab.start()
    until(lambda: (lab.runs / "latest" / "results.json").exists())
    runner.send_signal(signal.SIGTERM)
    said, _ = runner.communicate(timeout=20)
    assert runner.returncode == 143
    assert lab.results()["notebooks"][1]["status"] == "not run"
    assert "Traceback" not in said


def test_kernels_end_by_themselves_when_the_runner_is_killed(lab):
    with tempfile.TemporaryDirectory() as short:  # for what a killed runner cannot remove
        runner = lab.start(env={"TMPDIR": short})
        at_work(lab)
        runner.kill()
        runner.communicate(timeout=10)
    kernel = int((lab.notebooks / "kernel.pid").read_text())
    until(lambda: not alive(kernel), seconds=10)
    os.kill(int((lab.notebooks / "child.pid").read_text()), signal.SIGKILL)
    assert [x["status"] for x in lab.results()["notebooks"]] == ["running", "not run"]


def test_a_lesson_over_its_limit_is_a_timeout(lab):
    status, _ = lab.run("1", "--lesson-timeout", "2.5")
    assert status == 1
    (lesson,) = lab.results()["notebooks"]
    assert lesson["status"] == "timeout"
    assert lesson["error"]["message"] == "The lesson ran longer than 2.5 s and was stopped."
    assert "--lesson-timeout" in lesson["error"]["hint"]
    assert not any(map(alive, pids(lab.notebooks)))


def test_a_kernel_that_cannot_start_is_reported_with_what_it_printed(tmp_path):
    lab = Lab(tmp_path)
    lab.lesson("01_good", "1")
    (lab.modules / "ipykernel_launcher.py").write_text("raise ImportError('no such kernel')")
    status, said = lab.run()
    error = lab.results()["notebooks"][0]["error"]
    assert (status, error["cell"]) == (1, None)
    assert "ImportError: no such kernel" in error["message"]
    assert "Traceback" not in said


def test_files_that_cannot_be_written_are_named_and_the_run_goes_on(tmp_path):
    lab = Lab(tmp_path)
    lab.lesson("01_good", "1")
    lab.lesson("02_good", "1")
    limit = 100_000  # bytes per file: enough for results.json, too few for a page
    status, said = lab.run(
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    )
    assert status == 1
    assert [x["status"] for x in lab.results()["notebooks"]] == ["passed", "passed"]
    for name in ("01_good", "02_good"):
        assert f"Could not write {lab.latest / name}.html: File too large" in said
    assert "Traceback" not in said
    assert not list(lab.latest.glob(".*"))


def test_a_reader_of_the_log_that_goes_away_does_not_end_the_run(tmp_path):
    lab = Lab(tmp_path)
    lab.lesson("01_good", "1")
    lab.lesson("02_good", "1")
    runner = lab.start(stderr=None)
    runner.stdout.readline()
    runner.stdout.close()
    assert runner.wait(timeout=60) == 0
    assert [x["status"] for x in lab.results()["notebooks"]] == ["passed", "passed"]


@pytest.fixture
def full_disk(monkeypatch):
    """Files that exist stay readable; a write keeps a few bytes and fails."""

    def write_text(path, text, **_):
        path.write_bytes(text.encode()[:10])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def fill():
        monkeypatch.setattr(Path, "write_text", write_text)

    return fill


def test_a_full_disk_keeps_the_old_results_whole(tmp_path, full_disk):
    folder = Folder(tmp_path / "runs")
    folder.keep_json("results.json", {"lesson": 1})
    full_disk()
    folder.keep_json("results.json", {"lesson": 2})
    assert folder.problems == {folder.path / "results.json": "No space left on device"}
    assert [path.name for path in folder.path.iterdir()] == ["results.json"]
    assert (folder.path / "results.json").read_text() == '{\n "lesson": 1\n}\n'


def test_a_problem_is_forgotten_once_the_file_is_written(tmp_path, full_disk, monkeypatch):
    folder = Folder(tmp_path / "runs")
    full_disk()
    folder.keep("a", "1")
    monkeypatch.undo()
    folder.keep("a", "1")
    assert folder.problems == {}


def test_runs_in_the_same_second_get_folders_of_their_own(tmp_path):
    folders = [Folder(tmp_path) for _ in range(5)]
    assert len({folder.path for folder in folders}) == 5
    assert (tmp_path / "latest").resolve() == folders[-1].path


def test_a_folder_without_links_still_keeps_runs(tmp_path, monkeypatch):
    def no_links(*_, **__):
        raise NotImplementedError

    monkeypatch.setattr(Path, "symlink_to", no_links)
    Folder(tmp_path).keep("a", "1")
    assert not (tmp_path / "latest").exists()


def test_something_else_named_latest_is_left_alone(tmp_path):
    (tmp_path / "latest").mkdir()
    (tmp_path / "latest" / "mine").touch()
    folder = Folder(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"latest", folder.path.name}
    assert (tmp_path / "latest" / "mine").exists()


def test_results_are_strict_json(tmp_path):
    with pytest.raises(ValueError, match="not JSON compliant"):
        Folder(tmp_path).keep_json("results.json", float("nan"))


def test_a_write_replaces_the_file_in_one_step(tmp_path):
    path = tmp_path / "a"
    path.write_text("old")
    with path.open() as reader:
        write_atomically(path, "new")
        assert reader.read() == "old"
    assert path.read_text() == "new"
