"""The NVIDIA driver, its GPUs, and what stands between them and JAX."""

import os
import shutil
import subprocess
from pathlib import Path

from course_utils.check.packages import plugins
from course_utils.check.row import Row
from course_utils.gpu_diagnosis import gpu_problems

OLDEST_DRIVER = {"cuda12": 525, "cuda13": 580}  # what the CUDA wheels need
LIMIT_S = 15
SHADOWS = ("libcudart.so*", "libcublas.so*", "libcudnn.so*", "libnccl.so*", "libcusparse.so*")
NO_GPU = "no NVIDIA driver: JAX computes on the CPU"


class DriverProblem(Exception):
    """nvidia-smi is there and gives no answer; the message says why."""


def smi(*fields: str, what: str = "gpu") -> list[list[str]]:
    """What nvidia-smi says, one list per GPU (or process); empty where there is no driver."""
    if not shutil.which("nvidia-smi"):
        return []
    query = ["nvidia-smi", f"--query-{what}={','.join(fields)}", "--format=csv,noheader,nounits"]
    try:
        answer = subprocess.run(query, capture_output=True, text=True, timeout=LIMIT_S)
    except subprocess.TimeoutExpired as error:
        raise DriverProblem(f"nvidia-smi gives no answer within {LIMIT_S} s") from error
    if answer.returncode:
        said = (answer.stdout + answer.stderr).strip().splitlines() or ["no reason given"]
        raise DriverProblem(f"nvidia-smi fails: {said[0]}")
    return [[cell.strip() for cell in line.split(",")] for line in answer.stdout.splitlines()]


def expected_gpus() -> int | None:
    """How many GPUs EXPECT_GPUS asks for, None if it asks for nothing; ValueError otherwise."""
    text = os.environ.get("EXPECT_GPUS", "").strip()
    if text and not text.isdecimal():
        raise ValueError(f"EXPECT_GPUS is {text!r}; it takes a whole number of GPUs, such as 2")
    return int(text) if text else None


def expectation() -> Row | None:
    """What is wrong with EXPECT_GPUS, as the row of the devices; None if nothing is."""
    try:
        expected_gpus()
    except ValueError as error:
        return Row("FAIL", "Devices", str(error), "Correct EXPECT_GPUS, or unset it.")
    return None


def _gpus_are_expected() -> bool:
    return expectation() is None and bool(expected_gpus())


def driver() -> Row:
    """The driver is new enough for the CUDA libraries that came with JAX."""
    try:
        gpus = smi("driver_version")
    except DriverProblem as problem:
        return Row("FAIL", "NVIDIA driver", str(problem), "Restart the machine or its driver.")
    if not gpus:
        if _gpus_are_expected():
            cure = "Install the driver; in a container, ask for nvidia.com/gpu."
            return Row("FAIL", "NVIDIA driver", "no nvidia-smi, but EXPECT_GPUS is set", cure)
        return Row("OK", "NVIDIA driver", NO_GPU)
    found = gpus[0][0]
    for cuda, oldest in OLDEST_DRIVER.items():
        wheels = any(cuda in name for name in plugins())
        if wheels and int(found.split(".")[0]) < oldest:
            cure = f"Update the driver to {oldest} or newer: the {cuda} build of JAX needs it."
            return Row("FAIL", "NVIDIA driver", found, cure)
    if not plugins():
        cure = "Remove the folder .venv, then make setup: it installs the CUDA build."
        return Row("FAIL", "NVIDIA driver", f"{found}, but JAX is the CPU build", cure)
    return Row("OK", "NVIDIA driver", found)


def library_path() -> Row:
    """No other CUDA stands before the one that came with JAX."""
    folders = [f for f in os.environ.get("LD_LIBRARY_PATH", "").split(":") if f]
    bad = [f for f in folders if any(any(Path(f).glob(name)) for name in SHADOWS)]
    if not bad:
        return Row(
            "OK", "LD_LIBRARY_PATH", f"{len(folders)} folders, no CUDA" if folders else "not set"
        )
    cure = "Unset LD_LIBRARY_PATH before Python starts: JAX brings its own CUDA libraries."
    return Row("FAIL" if plugins() else "WARN", "LD_LIBRARY_PATH", f"CUDA in {bad[0]}", cure)


def memory_of_others() -> Row:
    """GPU memory that other processes hold; look before any of ours starts."""
    name = "GPU memory"
    try:
        gpus = [(int(used), int(total)) for used, total in smi("memory.used", "memory.total")]
        users = [f"{pid} ({mb} MB)" for pid, mb in smi("pid", "used_memory", what="compute-apps")]
    except DriverProblem as problem:
        return Row("FAIL", name, f"not to be read: {problem}", "See the row of the driver.")
    except ValueError:  # "[N/A]": slices of a GPU, and GPUs that share the CPU's memory
        return Row("WARN", name, "this GPU doesn't tell", "Look for other users with nvidia-smi.")
    if not gpus:
        return Row("OK", name, "no GPU")
    worst = max(range(len(gpus)), key=lambda i: gpus[i][0] / gpus[i][1])
    used, total = gpus[worst]
    who = f", processes {', '.join(users)}" if users else ""
    found = f"{used:,} of {total:,} MB of GPU {worst} in use{who}"
    cure = "Shut down other kernels and servers; `nvidia-smi` lists them."
    if used > 0.5 * total:
        return Row("FAIL", name, found, cure)
    return Row("WARN" if used > 0.05 * total and used > 1000 else "OK", name, found, cure)


def devices_row(seen: dict) -> Row:
    """The devices that JAX sees, against EXPECT_GPUS or else against what nvidia-smi lists."""
    try:
        there = len(smi("name"))
    except DriverProblem:
        there = 0
    expected = expected_gpus()
    wanted = there if expected is None else expected
    gpus = seen["count"] if seen["platform"] != "cpu" else 0
    kind = "CPU" if seen["kind"] == "cpu" else seen["kind"]
    found = f"{seen['count']} \u00d7 {kind}"
    if gpus < wanted:
        source = "EXPECT_GPUS asks for" if expected is not None else "nvidia-smi lists"
        cure = " Or: ".join(gpu_problems())
        chosen = expected is None and os.environ.get("JAX_PLATFORMS")  # somebody's own decision
        status = "WARN" if chosen else "FAIL"
        return Row(status, "Devices", f"{found}, but {source} {wanted} GPUs", cure)
    return Row(
        "OK", "Devices", found if gpus else f"{found}; lessons simulate more where they need"
    )
