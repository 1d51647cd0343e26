"""The rows that start JAX, each in a process that can be ended."""

import os

from course_utils.check import gpu
from course_utils.check.limits import NoAnswer, ask_process
from course_utils.check.row import Row
from course_utils.gpu_diagnosis import gpu_problems

START_S = 90  # importing JAX and starting a GPU backend on a slow disk
HANGS = (
    "GPUs that can't reach each other hang here. Set NCCL_DEBUG=INFO to see where, try "
    "NCCL_P2P_DISABLE=1, and see the row of the shared memory."
)


def devices(seconds: float = START_S) -> Row:
    """The devices that JAX sees."""
    if wrong := gpu.expectation():
        return wrong
    try:
        return gpu.devices_row(ask_process(["devices"], seconds, {}))
    except NoAnswer as problem:
        return Row("FAIL", "Devices", str(problem), " Or: ".join(gpu_problems()))


def matmul(work_s: float, seconds: float = START_S) -> Row:
    """Every device multiplies, for some seconds, and is right."""
    name = "Matrix product"
    try:
        did = ask_process(["matmul", str(work_s)], work_s + seconds, {})
    except NoAnswer as problem:
        return Row("FAIL", name, str(problem), "See the rows of devices, driver and GPU memory.")
    if not did["right"]:
        cure = "A device computes wrong results: don't use this machine."
        return Row("FAIL", name, "a wrong result", cure)
    each = f"{did['tflops']:.2f} TFLOP/s in float32"
    return Row("OK", name, f"{each} on each of {did['devices']}" if did["devices"] > 1 else each)


def all_reduce(seconds: float = START_S) -> Row:
    """All devices add up what each holds; on a CPU, two simulated ones."""
    name = "All-reduce"
    # A number that is set already stays: XLA takes the last flag, JAX its own variable first.
    simulated = {"JAX_NUM_CPU_DEVICES": os.environ.get("JAX_NUM_CPU_DEVICES", "2")}
    try:
        did = ask_process(["all_reduce"], seconds, simulated)
    except NoAnswer as problem:
        return Row("FAIL", name, str(problem), HANGS)
    if not did["right"]:
        return Row("FAIL", name, f"a wrong sum over {did['devices']} devices", HANGS)
    return Row("OK", name, f"right over {did['devices']} devices")
