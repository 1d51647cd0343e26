"""The start-up programs of the pod, run for real by a user without rights.

Most tests install a lock of one small package, by the same pip with the same options: what differs
from a real start is only how long it takes. One real start, with the CPU lock, is at the end.
"""

import hashlib
import io
import json
import os
import re
import socket
import subprocess
import tarfile
import time
import urllib.error
import urllib.request

import pytest
import yaml
from infra_pod import AS_ROOT, USER, Pod, archive, as_user, wheel
from infra_tools import REPOSITORY


@pytest.fixture
def pod():
    pod = Pod()
    yield pod
    pod.remove()


@pytest.fixture(scope="module")
def started():
    """A pod after its first start, with its log."""
    pod = Pod()
    pod.send()
    first = pod.lab()
    yield pod, first
    pod.remove()


def test_the_first_start_brings_lessons_and_environment(started):
    pod, first = started
    assert pod.text("notebooks/01_first.ipynb") == '{"cells": 1}'
    assert f"--ServerApp.root_dir={pod.workspace}" in first["arguments"]
    assert "--LabApp.default_url=/lab/tree/notebooks" in first["arguments"]
    assert f"--config={pod.mount}/pod/jupyter_server_config.py" in first["arguments"]
    assert first["course"] == str(pod.workspace / "course_utils/__init__.py")
    assert first["folder"] == str(pod.workspace)
    assert first["PATH"].startswith(f"{pod.environments()[0]}/bin:")
    assert first["user"] == (USER if AS_ROOT else os.getuid())
    assert first["JUPYTER_TOKEN"] == "a-secret-of-48-letters"
    assert "a-secret" not in first["log"].split("LAB ")[0]


def test_a_restart_installs_nothing_and_keeps_work(started):
    pod, _ = started
    pod.write("notebooks/01_first.ipynb", "my work")
    pod.write("notebooks/mine.ipynb", "my own")
    began = time.monotonic()
    again = pod.lab(PIP_FIND_LINKS="/nowhere")
    assert time.monotonic() - began < 10
    assert "the environment is here already" in again["log"]
    assert "installing" not in again["log"]
    assert pod.text("notebooks/01_first.ipynb") == "my work"
    assert pod.text("notebooks/mine.ipynb") == "my own"
    assert "stays" not in again["log"]  # the course has not changed, so there is nothing to say


def test_an_interrupted_installation_is_begun_anew(started):
    pod, _ = started
    (pod.environments()[0] / "whole.json").unlink()
    (pod.environments()[0] / "bin/python").unlink()
    assert "installing" in pod.lab()["log"]


def test_a_job_runs_the_course_as_it_was_sent(started):
    """Not a participant's edit of it; and it waits until the results are fetched."""
    pod, _ = started
    pod.write("course_utils/__init__.py", "raise SystemExit('a participant broke it')\n")
    code = (
        "import course_utils, pathlib, sys; print(course_utils.__file__); "
        "pathlib.Path(sys.argv[1], 'result').write_text('42'); sys.exit(3)"
    )
    output = str(pod.workspace / "runs")
    arguments = ("run", output, "-c", code, output)
    began = time.monotonic()
    done = pod.start(*arguments, COLLECT_SECONDS="2")
    assert done.returncode == 3
    assert time.monotonic() - began > 2
    assert str(pod.tmp / "course/course_utils/__init__.py") in done.stdout
    assert "finished with status 3; the results wait" in done.stdout
    assert pod.text("runs/result") == "42"
    (pod.tmp / "collected").touch()
    assert pod.start(*arguments, COLLECT_SECONDS="200").returncode == 3  # at once
    (pod.tmp / "collected").unlink()
    other = pod.start(*arguments, COLLECT_SECONDS="200", JOB_COMPLETION_INDEX="1")
    assert "wait" not in other.stdout  # only process 0 has results
    pod.write("course_utils/__init__.py", "")


def test_new_packages_take_the_place_of_the_old(started):
    pod, _ = started
    before = pod.environments()
    pod.send("2" * 40, lab="2.0")
    assert pod.lab()["version"] == "2.0"
    assert len(pod.environments()) == 1
    assert pod.environments() != before


def test_without_network_the_earlier_environment_serves(started):
    pod, _ = started
    pod.send("2" * 40, lab="2.0")
    assert pod.lab()["version"] == "2.0"
    pod.send("3" * 40, lab="3.0", notebooks__03_third="new")
    told = pod.lab(**NO_NETWORK)
    assert told["version"] == "2.0"
    assert "WARNING: the environment can't be installed: packages are not reachable" in told["log"]
    assert pod.text("notebooks/03_third.ipynb") == "new"
    assert len(pod.environments()) == 1


NO_NETWORK = {
    "PIP_NO_INDEX": "0",
    "PIP_FIND_LINKS": "",
    "PIP_INDEX_URL": "http://127.0.0.1:9/simple",
    "PIP_RETRIES": "0",
}


def test_a_first_start_without_network_says_so(pod):
    pod.send()
    done = pod.start(**NO_NETWORK)
    assert done.returncode == 1
    assert (
        "course: ERROR: the environment can't be installed: packages are not reachable"
        in done.stdout
    )
    assert "What to do: Look at Cloud NAT" in done.stdout
    assert pod.environments() == []
    assert pod.text("notebooks/01_first.ipynb")  # the lessons need no network


def test_a_package_that_is_not_the_tested_one_is_refused(pod):
    pod.send()
    other = next(pod.wheels.iterdir())
    other.write_bytes(other.read_bytes() + b"#")
    done = pod.start()
    assert done.returncode == 1
    assert "a package is not the one that the course was tested with" in done.stdout


def test_without_a_course_jupyterlab_says_how_to_bring_it(pod):
    pod.send_lock_only()
    (pod.workspace / "course_utils.py").write_text("")  # the stand-in imports it
    first = pod.lab(JUPYTER_TOKEN="")
    assert "--LabApp.default_url=/lab/tree/START_HERE.md" in first["arguments"]
    assert "make deploy" in pod.text("START_HERE.md")
    kept = pod.workspace / ".course/token"
    assert first["JUPYTER_TOKEN"] == kept.read_text()
    assert len(kept.read_text()) == 48
    assert kept.stat().st_mode & 0o777 == 0o600
    assert kept.read_text() not in first["log"].split("LAB ")[0]
    pod.send()
    then = pod.lab(JUPYTER_TOKEN="")
    assert "--LabApp.default_url=/lab/tree/notebooks" in then["arguments"]
    assert not (pod.workspace / "START_HERE.md").exists()
    assert then["JUPYTER_TOKEN"] == first["JUPYTER_TOKEN"]


# --- Lessons --------------------------------------------------------------------------------------


def test_an_update_brings_what_nobody_changed(pod):
    pod.send("1" * 40)
    pod.start("unpack")
    pod.send("2" * 40, notebooks__01_first="newer", notebooks__03_third="new")
    log = pod.start("unpack").stdout
    assert "bringing the lessons of version 2222222" in log
    assert pod.text("notebooks/01_first.ipynb") == "newer"
    assert pod.text("notebooks/03_third.ipynb") == "new"
    assert "stays" not in log


def test_a_changed_lesson_stays_and_the_new_one_lies_beside_it(pod):
    pod.send("1" * 40)
    pod.start("unpack")
    pod.write("notebooks/01_first.ipynb", "my work")
    pod.send("2" * 40, notebooks__01_first="newer")
    line = "notebooks/01_first.ipynb was changed here and stays; the course's new version is "
    assert f"{line}notebooks/new-2222222-01_first.ipynb" in pod.start("unpack").stdout
    assert pod.text("notebooks/01_first.ipynb") == "my work"
    assert pod.text("notebooks/new-2222222-01_first.ipynb") == "newer"
    assert "stays" not in pod.start("unpack").stdout  # said once
    assert pod.text("notebooks/new-2222222-01_first.ipynb") == "newer"
    pod.send("3" * 40, notebooks__01_first="newest")
    pod.start("unpack")
    assert pod.text("notebooks/new-3333333-01_first.ipynb") == "newest"
    assert not (pod.workspace / "notebooks/new-2222222-01_first.ipynb").exists()
    pod.write("notebooks/new-3333333-01_first.ipynb", "worked in this one")
    pod.send("4" * 40, notebooks__01_first="last")
    pod.start("unpack")
    assert pod.text("notebooks/new-3333333-01_first.ipynb") == "worked in this one"


def test_the_name_beside_is_no_lesson_of_its_own(pod, tmp_path):
    from course_utils.headless import lessons

    (tmp_path / "01_first.ipynb").touch()
    (tmp_path / "new-2222222-01_first.ipynb").touch()
    assert list(lessons.find(tmp_path)) == ["01_first"]


def test_a_deleted_lesson_comes_back_fresh(pod):
    pod.send()
    pod.start("unpack")
    (pod.workspace / "notebooks/01_first.ipynb").unlink()
    pod.start("unpack")
    assert pod.text("notebooks/01_first.ipynb") == '{"cells": 1}'


def test_a_lesson_that_the_course_drops_goes_unless_it_was_changed(pod):
    pod.send("1" * 40)
    pod.start("unpack")
    pod.write("notebooks/02_second.ipynb", "my work")
    pod.send(
        "2" * 40, notebooks__01_first=None, notebooks__02_second=None, notebooks__03_third="new"
    )
    log = pod.start("unpack").stdout
    assert not (pod.workspace / "notebooks/01_first.ipynb").exists()
    assert pod.text("notebooks/02_second.ipynb") == "my work"
    assert "notebooks/02_second.ipynb is no longer part of the course" in log


def test_a_file_that_was_there_before_the_course_stays(pod):
    (pod.workspace / "notebooks").mkdir()
    (pod.workspace / "notebooks").chmod(0o777)
    pod.write("notebooks/01_first.ipynb", "somebody's")
    pod.send()
    pod.start("unpack")
    assert pod.text("notebooks/01_first.ipynb") == "somebody's"
    assert pod.text("notebooks/new-1111111-01_first.ipynb") == '{"cells": 1}'


def test_a_damaged_record_loses_nothing(pod):
    pod.send()
    pod.start("unpack")
    pod.write("notebooks/01_first.ipynb", "my work")
    pod.write(".course/lessons.json", "{")
    done = pod.start("unpack")
    assert done.returncode == 0
    assert "the record of the lessons is damaged" in done.stdout
    assert pod.text("notebooks/01_first.ipynb") == "my work"


def test_an_archive_cannot_write_outside_the_workspace(pod):
    evil = archive({"../escaped": "x", "/tmp/jax-course-escaped": "x", "fine.md": "y"}, "1" * 40)
    (pod.mount / "course/course.tar.gz").write_bytes(evil)
    pod.start("unpack")
    assert pod.text("fine.md") == "y"
    assert not (pod.root / "escaped").exists()
    assert not os.path.exists("/tmp/jax-course-escaped")


# --- A full volume --------------------------------------------------------------------------------


@pytest.fixture
def small():
    pod = Pod(workspace_size="48m")
    yield pod
    pod.remove()


def fill(pod):
    with (pod.workspace / "filler").open("wb") as file:
        try:
            while True:
                file.write(b"x" * 65536)
                file.flush()
        except OSError:
            pass


def test_a_full_volume_keeps_nobody_from_making_room(small):
    small.send("1" * 40)
    small.lab()
    fill(small)
    small.send("2" * 40, lab="2.0", notebooks__01_first="x" * 200_000)
    told = small.lab()
    assert "is full, so the lessons were not brought up to date" in told["log"]
    assert "WARNING: the volume or the pod's scratch space is full" in told["log"]
    assert told["version"] == "1.0"
    assert small.text("notebooks/01_first.ipynb") == '{"cells": 1}'
    assert not list(small.workspace.glob("notebooks/.*"))
    (small.workspace / "filler").unlink()
    assert small.lab()["version"] == "2.0"
    assert small.text("notebooks/01_first.ipynb") == "x" * 200_000


def test_a_volume_that_is_too_small_for_the_environment():
    pod = Pod(workspace_size="4m")
    try:
        pod.send()
        done = pod.start()
        assert done.returncode == 1
        assert "ERROR: the volume or the pod's scratch space is full" in done.stdout
        assert pod.environments() == []
    finally:
        pod.remove()


# --- The real thing -------------------------------------------------------------------------------


def real_course() -> bytes:
    """The course as `make deploy` sends it, with the lock for CPUs in place of the one for GPUs."""
    from deploy.cluster import course

    files = {}
    with tarfile.open(fileobj=io.BytesIO(course.archive())) as tar:
        for member in tar.getmembers():
            if member.isfile():
                files[member.name] = tar.extractfile(member).read()
        version = tar.pax_headers["comment"]
    files["requirements.txt"] = (REPOSITORY / "requirements-cpu.txt").read_bytes()
    return archive(files, version)


def ask(port: int, path: str, token: str = "", host: str = "") -> tuple[int, bytes]:
    headers = {"Authorization": f"token {token}"} if token else {}
    headers |= {"Host": host} if host else {}
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, b""


def until_it_answers(process, port: int, seconds: float) -> float:
    began = time.monotonic()
    while time.monotonic() - began < seconds:
        assert process.poll() is None, "the server ended"
        try:
            if ask(port, "/api")[0] == 200:
                return time.monotonic() - began
        except OSError:
            time.sleep(0.3)
    raise AssertionError(f"no answer within {seconds} s")


@pytest.mark.skipif(
    os.environ.get("INFRA_REAL_START") != "1",
    reason="installs the whole lock (INFRA_REAL_START=1; .ci/run does it)",
)
@pytest.mark.timeout(900)
def test_a_real_start_with_the_cpu_lock(pod):
    from deploy.pod import idle_scaler

    (pod.mount / "course/course.tar.gz").write_bytes(real_course())
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    pip = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "UV_"))}
    for name in ("PIP_CONFIG_FILE", "PIP_NO_INDEX", "PIP_FIND_LINKS"):
        del pod.variables[name]
    variables = {**pod.variables, **pip, "SERVER_PORT": str(port), "JAX_PLATFORMS": "cpu"}
    log = pod.root / "log"
    for start, patience in (("first", 800), ("second", 60)):
        with log.open("w") as file:
            process = subprocess.Popen(
                pod.command("serve"), env=variables, stdout=file, stderr=file, cwd=pod.workspace
            )
        try:
            seconds = until_it_answers(process, port, patience)
            print(f"{start} start: {seconds:.1f} s")
            said = log.read_text()
            assert "a-secret" not in said
            assert ("installing" in said) == (start == "first")
            assert ask(port, "/api", host="10.20.0.7:8884")[0] == 200  # as the kubelet asks
            assert ask(port, "/api/status")[0] == 403
            assert ask(port, "/api/contents/notebooks", "wrong")[0] == 403
            status, body = ask(port, "/api/contents/notebooks", "a-secret-of-48-letters")
            assert status == 200
            assert "01_training_loop.ipynb" in [
                each["name"] for each in json.loads(body)["content"]
            ]
            server = idle_scaler.Server(f"http://127.0.0.1:{port}", "a-secret-of-48-letters")
            active = server.last_activity()
            assert server.last_activity() == active  # asking is no activity
            with pytest.raises(idle_scaler.NoToken):
                idle_scaler.Server(f"http://127.0.0.1:{port}", "").last_activity()
        finally:
            process.terminate()
            process.wait(timeout=60)
    no_source_of_data_is_an_error_that_helps(pod, variables)
    workers_train_together(pod, variables)
    a_lesson_runs_headlessly(pod, variables)


def no_source_of_data_is_an_error_that_helps(pod, variables):
    """The archive has no sample of the data set to fall back on."""
    code = (
        "from course_utils import fashion_mnist as f\n"
        "try: f.load()\nexcept f.DatasetUnavailable as e: print('says', e)"
    )
    done = subprocess.run(
        as_user([str(pod.environments()[0] / "bin/python"), "-c", code]),
        env={**variables, "FASHION_MNIST_SOURCES": "cache,sample"},
        cwd=pod.workspace,
        text=True,
        capture_output=True,
        timeout=120,
    )
    assert "says" in done.stdout, done.stderr


def job(pod, name: str, **variables: str) -> tuple[list[str], dict[str, str]]:
    """Command and variables of a Job as its manifest has them, on this pod's folders."""
    spec = yaml.safe_load((REPOSITORY / f"deploy/jobs/{name}/job.yaml").read_text())["spec"]
    box = spec["template"]["spec"]["containers"][0]
    given = [*box["command"], *box["args"]]
    words = given[given.index("run") :]
    keep = ("PATH", "LD_LIBRARY_PATH", "HOME", "TMPDIR", "EXPECT_GPUS", "USER")
    env = {each["name"]: each["value"] for each in box["env"] if each["name"] not in keep}
    command = pod.command(*(word.replace("/workspace", str(pod.workspace)) for word in words))
    return command, {**env, "COLLECT_SECONDS": "1", **variables}


def workers_train_together(pod, variables):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    started = []
    for index in ("0", "1"):
        scratch = pod.tmp / index
        scratch.mkdir()
        if AS_ROOT:
            os.chown(scratch, USER, USER)
        told = {"JOB_COMPLETION_INDEX": index, "COORDINATOR_ADDRESS": address}
        command, env = job(
            pod, "workers", TMPDIR=str(scratch), INITIALIZATION_SECONDS="120", **told
        )
        command += ["--pairs", "1000", "--steps", "2"]
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        started.append(
            subprocess.Popen(command, env={**variables, **env}, cwd=pod.workspace, **options)
        )
    said = [process.communicate(timeout=240)[0] for process in started]
    assert [process.returncode for process in started] == [0, 0], "\n".join(said)
    sums = {re.search(r"global sum (\S+)", text)[1] for text in said}
    assert len(sums) == 1
    assert (pod.workspace / "runs/parameters.npz").stat().st_size > 100_000


def a_lesson_runs_headlessly(pod, variables):
    command, env = job(pod, "course-run", LESSONS="01", PROFILE="test")
    done = subprocess.run(
        command,
        env={**variables, **env},
        cwd=pod.workspace,
        text=True,
        capture_output=True,
        timeout=400,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    results = json.loads((pod.workspace / "runs/latest/results.json").read_text())
    assert [each["status"] for each in results["notebooks"]] == ["passed"]


def test_the_stand_in_is_installed_by_hash(pod):
    line = wheel(pod.wheels, "1.0")
    path = next(pod.wheels.iterdir())
    assert hashlib.sha256(path.read_bytes()).hexdigest() in line
