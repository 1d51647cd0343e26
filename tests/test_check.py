"""Every [FAIL] of `make check` is proved by a planted fault; none of them can hang."""

import json
import os
import socket
import subprocess
import sys
import time
from collections import namedtuple

import numpy as np
import pytest
from headless_lab import alive, until

from course_utils.check import __main__ as command
from course_utils.check import compute, gpu, limits, machine, packages, show
from course_utils.check.row import Row

GB = 2**30
Usage = namedtuple("Usage", "total used free")


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch):
    for name in ("EXPECT_GPUS", "LD_LIBRARY_PATH", "JSON", "PORT", "XLA_FLAGS"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def nvidia_smi(tmp_path, monkeypatch):
    """Put an nvidia-smi on PATH that runs these lines of shell; return how to write it."""
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    def write(*lines):
        script = tmp_path / "nvidia-smi"
        script.write_text("\n".join(["#!/bin/sh", *lines]) + "\n")
        script.chmod(0o755)

    return write


@pytest.fixture
def installed(monkeypatch):
    """Pretend that exactly these distributions are installed."""
    return lambda **versions: monkeypatch.setattr(
        packages, "installed", lambda name: versions.get(name.replace("-", "_"))
    )


@pytest.fixture
def jax_module(tmp_path, monkeypatch):
    """Have processes of the checks import this as jax; leaves their number in jax.pid."""

    def write(code):
        left = (
            f"import os, time\nopen({str(tmp_path / 'jax.pid')!r}, 'w').write(str(os.getpid()))\n"
        )
        (tmp_path / "jax.py").write_text(left + code)
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    return write


def gpu_build(installed, version="0.10.2", plugin="0.10.2", pjrt="0.10.2"):
    installed(jax=version, jaxlib=version, jax_cuda12_plugin=plugin, jax_cuda12_pjrt=pjrt)


def outcome(row):
    assert row.status == "OK" or row.cure
    return row.status


def test_this_machine_is_right_in_every_row():
    rows = {row.name: row for row in show.quick_rows()}
    assert list(rows) == list(show.QUICK)
    assert [row.name for row in rows.values() if row.status == "FAIL"] == []
    assert rows["Python"].found.startswith(".".join(map(str, sys.version_info[:3])))
    assert "as locked in requirements" in rows["Packages"].found


def test_an_old_python_fails():
    row = packages.python((3, 10, 4))
    assert (outcome(row), row.found) == ("FAIL", "3.10.4")


def test_packages_are_held_against_the_lock(tmp_path, monkeypatch):
    monkeypatch.setattr(packages, "ROOT", tmp_path)
    assert outcome(packages.locked_packages()) == "WARN"  # no lock
    lock = tmp_path / "requirements-cpu.txt"
    numpy = packages.installed("numpy")
    lock.write_text(f"numpy=={numpy} ; python_version >= '3' \\\n    --hash=sha256:00\n")
    assert packages.locked_packages() == Row(
        "OK", "Packages", "all 1 as locked in requirements-cpu.txt"
    )
    lock.write_text("numpy==0.1 \\\n")
    row = packages.locked_packages()
    assert (outcome(row), row.found) == ("WARN", f"not as locked: numpy {numpy} (locked: 0.1)")
    lock.write_text("no-such-package==1.0\nother==1 ; sys_platform == 'win32'\n")
    row = packages.locked_packages()
    assert (outcome(row), row.found) == ("FAIL", "missing: no-such-package")


@pytest.mark.parametrize(
    ("versions", "status"),
    [
        ({"jax": "1", "jaxlib": "1"}, "OK"),
        ({"jax": "2", "jaxlib": "1"}, "WARN"),
        ({"jax": "1"}, "FAIL"),
        ({}, "FAIL"),
    ],
)
def test_jax_and_jaxlib_belong_together(installed, versions, status):
    installed(**versions)
    assert outcome(packages.jax_versions()) == status


@pytest.mark.parametrize(
    ("plugin", "pjrt", "status"),
    [
        ("0.10.2", "0.10.2", "OK"),
        ("0.10.1", "0.10.2", "FAIL"),
        ("0.10.2", "0.10.1", "FAIL"),
        ("0.10.2", None, "FAIL"),
    ],
)
def test_jaxlib_plugin_and_pjrt_are_the_same(installed, plugin, pjrt, status):
    gpu_build(installed, plugin=plugin, pjrt=pjrt)
    assert outcome(packages.jax_versions()) == status


def test_a_driver_that_is_new_enough_is_fine(nvidia_smi, installed):
    gpu_build(installed)
    nvidia_smi("echo 535.104.05")
    assert gpu.driver() == Row("OK", "NVIDIA driver", "535.104.05")


def test_a_driver_that_is_too_old_for_the_wheels_fails(nvidia_smi, installed):
    gpu_build(installed)
    nvidia_smi("echo 470.82.01")
    row = gpu.driver()
    assert (outcome(row), row.found) == ("FAIL", "470.82.01")
    assert "525" in row.cure


def test_a_gpu_with_the_cpu_build_of_jax_fails(nvidia_smi, installed):
    installed(jax="1", jaxlib="1")
    nvidia_smi("echo 550.1")
    assert outcome(gpu.driver()) == "FAIL"


def test_a_driver_that_fails_or_hangs_fails(nvidia_smi, monkeypatch):
    nvidia_smi("echo 'NVIDIA-SMI has failed: no communication'; exit 9")
    row = gpu.driver()
    assert outcome(row) == "FAIL"
    assert "no communication" in row.found
    assert outcome(gpu.memory_of_others()) == "FAIL"
    nvidia_smi("exec sleep 60")
    monkeypatch.setattr(gpu, "LIMIT_S", 0.5)
    row = gpu.driver()
    assert (outcome(row), row.found) == ("FAIL", "nvidia-smi gives no answer within 0.5 s")


def test_no_driver_fails_only_where_gpus_are_expected(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    assert outcome(gpu.driver()) == "OK"
    monkeypatch.setenv("EXPECT_GPUS", "2")
    assert outcome(gpu.driver()) == "FAIL"


def test_another_cuda_in_the_library_path_is_found(tmp_path, monkeypatch, installed):
    installed(jax="1", jaxlib="1")
    monkeypatch.setenv("LD_LIBRARY_PATH", f"/usr/lib/nothing:{tmp_path}")
    assert outcome(gpu.library_path()) == "OK"
    (tmp_path / "libcudart.so.12").touch()
    assert outcome(gpu.library_path()) == "WARN"
    gpu_build(installed)
    row = gpu.library_path()
    assert (outcome(row), row.found) == ("FAIL", f"CUDA in {tmp_path}")


@pytest.mark.parametrize(
    ("used", "status"),
    [("500", "OK"), ("6000", "WARN"), ("50000", "FAIL"), ("[N/A]", "WARN")],
)
def test_gpu_memory_that_others_hold_is_found(nvidia_smi, used, status):
    nvidia_smi(f'case "$1" in *memory.used,*) echo "{used}, 81559";; *) echo "77, 6000";; esac')
    row = gpu.memory_of_others()
    assert outcome(row) == status
    if status in ("WARN", "FAIL") and used != "[N/A]":
        assert "77 (6000 MB)" in row.found


def test_fewer_gpus_than_expected_fail(monkeypatch):
    monkeypatch.setenv("EXPECT_GPUS", "2")
    row = compute.devices()
    assert outcome(row) == "FAIL"
    assert "but EXPECT_GPUS asks for 2 GPUs" in row.found
    assert "JAX_PLATFORMS" in row.cure  # the suite's own setting keeps JAX on the CPU


def test_gpus_that_the_driver_lists_but_jax_does_not_see_fail(nvidia_smi, monkeypatch):
    nvidia_smi("echo 'NVIDIA L4'; echo 'NVIDIA L4'")
    on_cpu = {"count": 1, "platform": "cpu", "kind": "cpu"}
    assert outcome(gpu.devices_row(on_cpu)) == "WARN"  # the suite has chosen the CPU itself
    monkeypatch.delenv("JAX_PLATFORMS")
    row = gpu.devices_row(on_cpu)
    assert outcome(row) == "FAIL"
    assert "nvidia-smi lists 2 GPUs" in row.found


def test_all_expected_gpus_are_fine(nvidia_smi):
    nvidia_smi("echo 'NVIDIA L4'; echo 'NVIDIA L4'")
    seen = {"count": 2, "platform": "gpu", "kind": "NVIDIA L4"}
    assert gpu.devices_row(seen) == Row("OK", "Devices", "2 \u00d7 NVIDIA L4")


@pytest.mark.parametrize("number", ["two", "-1", "1.5"])
def test_a_number_of_gpus_that_is_none_fails_with_what_it_takes(monkeypatch, number):
    monkeypatch.setenv("EXPECT_GPUS", number)
    monkeypatch.setenv("PATH", "/nowhere")
    row = compute.devices()
    assert outcome(row) == "FAIL"
    assert row.found == f"EXPECT_GPUS is '{number}'; it takes a whole number of GPUs, such as 2"
    assert row.cure == "Correct EXPECT_GPUS, or unset it."
    assert outcome(gpu.driver()) == "OK"  # one mistake, one row


PROBES = {
    "devices": compute.devices,
    "matmul": lambda seconds: compute.matmul(0.1, seconds - 0.1),
    "all_reduce": compute.all_reduce,
}


@pytest.mark.parametrize("probe", PROBES)
def test_a_jax_that_hangs_fails_in_time_and_is_ended(probe, jax_module, tmp_path):
    jax_module("while True: time.sleep(1)")
    since = time.monotonic()
    row = PROBES[probe](2)
    assert outcome(row) == "FAIL"
    assert row.found == "no answer within 2 s: it hangs"
    assert time.monotonic() - since < 10
    pid = int((tmp_path / "jax.pid").read_text())
    until(lambda: not alive(pid), seconds=10)


@pytest.mark.parametrize("probe", PROBES)
@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("os.abort()", "ended with signal 6"),
        ("raise ImportError('libcudart is missing')", "libcudart is missing"),
        ("raise SystemExit(0)", "it printed nothing"),
    ],
)
def test_a_jax_that_dies_fails_with_its_last_words(probe, jax_module, code, says):
    jax_module(code)
    row = PROBES[probe](60)
    assert outcome(row) == "FAIL"
    assert says in row.found


def test_a_wrong_result_fails(monkeypatch):
    wrong = {"right": False, "devices": 2, "tflops": 1.0}
    monkeypatch.setattr(compute, "ask_process", lambda *_: wrong)
    assert outcome(compute.matmul(0.1)) == "FAIL"
    assert outcome(compute.all_reduce()) == "FAIL"


def test_the_devices_at_work_are_measured(monkeypatch):
    monkeypatch.setenv("JAX_NUM_CPU_DEVICES", "4")
    row = compute.matmul(0.2)
    assert outcome(row) == "OK"
    assert row.found.endswith("TFLOP/s in float32 on each of 4")
    assert compute.all_reduce() == Row("OK", "All-reduce", "right over 4 devices")
    monkeypatch.delenv("JAX_NUM_CPU_DEVICES")
    assert compute.all_reduce().found == "right over 2 devices"


@pytest.mark.parametrize(("free", "status"), [(8, "OK"), (3, "WARN"), (1, "FAIL")])
def test_memory_that_is_short_is_found(monkeypatch, tmp_path, free, status):
    monkeypatch.setattr(machine, "CGROUP", tmp_path)
    memory = namedtuple("memory", "available")
    monkeypatch.setattr(machine.psutil, "virtual_memory", lambda: memory(free * GB))
    assert outcome(machine.memory()) == status


def test_the_limit_of_a_container_counts(monkeypatch, tmp_path):
    monkeypatch.setattr(machine, "CGROUP", tmp_path)
    (tmp_path / "memory.max").write_text(f"{2 * GB}\n")
    (tmp_path / "memory.current").write_text(f"{1 * GB}\n")
    row = machine.memory()
    assert (outcome(row), row.found) == ("FAIL", "1.0 GB free in this container")
    (tmp_path / "memory.max").write_text("max\n")
    assert "container" not in machine.memory().found


@pytest.mark.parametrize(("free", "status"), [(50, "OK"), (3, "WARN"), (0.5, "FAIL")])
def test_a_disk_that_is_full_is_found(monkeypatch, free, status):
    monkeypatch.setattr(machine.shutil, "disk_usage", lambda _: Usage(0, 0, int(free * GB)))
    assert outcome(machine.disk()) == status


def test_shared_memory_that_lacks_is_found(monkeypatch, tmp_path):
    assert outcome(machine.shared_memory(str(tmp_path / "none"))) == "FAIL"
    monkeypatch.setattr(machine.shutil, "disk_usage", lambda _: Usage(0, 0, 64 * 2**20))
    assert outcome(machine.shared_memory(str(tmp_path))) == "WARN"


def test_a_data_set_that_lacks_is_found(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("FASHION_MNIST_SOURCES", "cache,sample")
    row = machine.dataset()
    assert capsys.readouterr().err == ""
    assert outcome(row) == "WARN"
    assert "6,000 + 1,000 images, sample" in row.found
    monkeypatch.setenv("FASHION_MNIST_SOURCES", "cache")
    assert outcome(machine.dataset()) == "FAIL"


@pytest.mark.parametrize(
    ("files", "reason"),
    [([], "holds none of the files"), (["train-images-idx3-ubyte"], "train-images-idx3-ubyte")],
)
def test_a_data_set_folder_that_is_of_no_use_is_found(monkeypatch, tmp_path, files, reason):
    for name in files:
        (tmp_path / name).write_text("not an image")
    monkeypatch.setenv("FASHION_MNIST_DIR", str(tmp_path))
    row = machine.dataset()
    assert outcome(row) == "WARN"
    assert f"FASHION_MNIST_DIR={tmp_path}: {reason}" in row.found
    assert row.found.endswith("trying the next source")
    assert row.cure.startswith("Correct FASHION_MNIST_DIR, or unset it.")


HOLDS = """
import socket, subprocess, sys, time
listener = socket.socket()
listener.bind(("127.0.0.1", 0))
listener.listen()
print(listener.getsockname()[1], flush=True)
"""


@pytest.fixture
def other_program(tmp_path):
    """A program that listens on some port."""
    program = subprocess.Popen(
        [sys.executable, "-c", HOLDS + "time.sleep(60)"],
        stdout=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    )
    yield int(program.stdout.readline()), program.pid
    program.kill()
    program.wait()


def test_a_port_that_another_program_holds_fails(other_program):
    port, pid = other_program
    row = machine.port(port)
    assert outcome(row) == "FAIL"
    assert row.found.startswith(f"held by process {pid} (")


def test_a_port_that_is_free_is_fine():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        number = free.getsockname()[1]
    assert machine.port(number) == Row("OK", f"Port {number}", "free")


def test_the_server_that_runs_us_may_hold_the_port():
    ask = "from course_utils.check import machine; print(machine.port({}).found)"
    code = HOLDS + f"number = listener.getsockname()[1]\nask = {ask!r}.format(number)\n"
    code += "subprocess.run([sys.executable, '-c', ask])"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout
    assert said.splitlines()[1] == "held by this course's JupyterLab"


def test_a_jupyter_server_of_this_folder_may_hold_the_port():
    code = HOLDS + "time.sleep(60)  # jupyter lab"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, cwd=machine.ROOT
    ) as server:
        row = machine.port(int(server.stdout.readline()))
        server.kill()
    assert row.status == "OK"


def test_a_probe_that_hangs_fails_in_time():
    since = time.monotonic()
    row = limits.within(0.3, "Disk", lambda: time.sleep(60))
    assert time.monotonic() - since < 5
    assert (outcome(row), row.name, row.found) == ("FAIL", "Disk", "no answer within 0.3 s")


def test_a_probe_that_breaks_fails():
    row = limits.within(5, "Disk", lambda: 1 / 0)
    assert outcome(row) == "FAIL"
    assert "ZeroDivisionError" in row.found


def check(*options, **environment):
    return subprocess.run(
        [sys.executable, "-m", "course_utils.check", *options],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_the_command_says_each_row_with_its_cure_and_exits_with_1_on_a_fail():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    done = check("--seconds", "0.1", EXPECT_GPUS="3", PORT=port)
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    (at,) = [n for n, line in enumerate(lines) if line.startswith("[FAIL]  Devices")]
    assert lines[at + 1].startswith(" " * 26 + "JAX_PLATFORMS")
    assert f"[OK]    Port {port}" in done.stdout
    assert "[OK]    All-reduce        right over" in done.stdout
    assert lines[-1].startswith("Not ready: ")
    assert done.stderr == ""


def test_machines_get_json():
    done = check("--quick", JSON="1")
    answer = json.loads(done.stdout)
    assert done.returncode == 0
    assert answer["ready"] is True
    assert [row["name"] for row in answer["rows"]] == list(show.QUICK)
    assert all(row["cure"] == "" for row in answer["rows"] if row["status"] == "OK")


def test_the_command_ends_although_a_thread_waits_for_ever(tmp_path, monkeypatch):
    code = (
        "import sys, time, course_utils.check.show as show\n"
        "show.QUICK = {'Disk': lambda: time.sleep(600)}; show.QUICK_S = 0.2\n"
        "sys.argv = ['check', '--quick']\n"
        "import runpy; runpy.run_module('course_utils.check', run_name='__main__')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30)
    assert done.returncode == 1
    assert "[FAIL]  Disk              no answer within 0.2 s" in done.stdout


@pytest.mark.parametrize(
    ("statuses", "says"),
    [
        (["OK", "OK"], "Ready: every check is fine."),
        (["OK", "WARN"], "Ready, with 1 warning."),
        (["FAIL", "WARN"], "Not ready: 1 of 2 checks fail."),
    ],
)
def test_the_table_in_one_sentence(statuses, says):
    assert show.verdict([Row(status, "x", "y", "z") for status in statuses]) == says


def test_no_probe_leaves_jax_in_this_process():
    code = (
        "import sys\nfrom course_utils.check.show import quick_rows\nlist(quick_rows())\n"
        "sys.exit('jax' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


@pytest.mark.parametrize(
    ("value", "passes"),
    [(1.0, True), (0.99999994, True), (1 - 2**-12, True), (0.99, False), (float("nan"), False)],
)
def test_lesson_00_lets_rounding_pass_and_nothing_else(value, passes):
    lesson = json.loads((machine.ROOT / "notebooks/00_start_here.ipynb").read_text())
    sources = ["".join(cell["source"]) for cell in lesson["cells"]]
    (source,) = [text for text in sources if "A matrix of ones" in text]
    seen = {}
    names = {
        "calls": [["first", 1.0, 1], ["second", 1.0, 0]],
        "product": np.array([[1, value]], np.float32),
        "checkpoint": lambda name, ok, **_: seen.update({name: ok}),
    }
    exec(source, names)
    assert [ok for name, ok in seen.items() if "A matrix of ones" in name] == [passes]


@pytest.mark.parametrize("port", ["x", "0", "70000"])
def test_a_port_that_is_none_is_refused_by_name(port, monkeypatch, capsys):
    monkeypatch.setenv("PORT", port)
    with pytest.raises(SystemExit, match="2"):
        command.main(["--quick"])
    assert f"PORT is '{port}'; it takes a whole number" in capsys.readouterr().err
