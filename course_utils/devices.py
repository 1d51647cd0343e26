"""Choose the devices of a lesson: real GPUs where there are enough, simulated CPU devices else."""

import contextlib
import os
import platform
import re
from collections.abc import Mapping, Sequence
from importlib import metadata
from types import SimpleNamespace
from typing import Any

import jax

from course_utils import checkpoints
from course_utils.compilation_cache import keep_compiled_programs
from course_utils.gpu_diagnosis import driver_version, gpu_problems

_COUNT_FLAG = re.compile(r"--xla_force_host_platform_device_count=(\d+)")


def request_devices(count: int = 0, min_count: int = 1) -> list[jax.Device]:
    """Return the devices to use, say in one line what they are, and keep that for the report.

    GPUs (or other accelerators) are taken if there are enough of them. Otherwise the CPU is
    split into as many simulated devices as asked for; they share the machine's cores. Call it
    before anything else uses JAX: the number of simulated devices is fixed when JAX starts.
    Calling it again with the same numbers is fine. XLA_FLAGS keep their other flags. What is
    compiled from then on is kept on disk for the next run (`compilation_cache`).

    Args:
        count: devices to use; 0 takes every GPU there is, or `min_count` simulated devices.
        min_count: the fewest that the lesson can do with.

    Raises:
        ValueError: a negative count, or a count below `min_count`.
        RuntimeError: JAX has started already with too few simulated devices; or the environment
            variable EXPECT_GPUS=n asks for n GPUs and there are fewer. The message says why.
    """
    wanted = _wanted(count, min_count)
    expected = _expected_gpus()
    _simulate(wanted)
    keep_compiled_programs()
    found = jax.devices()
    on_cpu = found[0].platform == "cpu"
    _check_expected(0 if on_cpu else len(found), expected)
    devices = found if count == 0 and not on_cpu else found[:wanted]
    if len(devices) < wanted:
        devices = _cpu_devices()[:wanted]
    if len(devices) < wanted:
        raise RuntimeError(_too_few(wanted, len(devices)))
    fell_back = devices[0].platform == "cpu" and not on_cpu
    # Else arrays that name no device would still go to the GPU that was not chosen.
    jax.config.update("jax_default_device", devices[0] if fell_back else None)
    checkpoints.record_environment(_in_one_line(devices), **environment(devices))
    return devices


def choose_profile(
    profile: str,
    profiles: Mapping[str, Mapping[str, Any]],
    devices: Sequence[jax.Device],
    **knobs: Any,
) -> SimpleNamespace:
    """Return the constants of a lesson: those of its profile, with the knobs that were turned.

    The result has one attribute per constant, and PROFILE, the name of the profile in use.

    Args:
        profile: a key of `profiles`, or "auto": "gpu" on accelerators, else "cpu".
        profiles: for each profile its constants, the same names in each.
        devices: what `request_devices` returned.
        **knobs: values from the parameters cell; None leaves the profile's.

    Raises:
        ValueError: an unknown profile, or a knob that it hasn't (the message lists the valid ones),
            or a knob that is no positive number where the profile has one.
    """
    if profile == "auto":
        profile = "cpu" if devices[0].platform == "cpu" else "gpu"
    if profile not in profiles:
        valid = ", ".join(repr(name) for name in ("auto", *profiles))
        raise ValueError(f"PROFILE is {profile!r}; this lesson has {valid}.")
    if unknown := knobs.keys() - profiles[profile].keys():
        raise ValueError(
            f"The {profile!r} profile has no constant {', '.join(sorted(unknown))}; "
            f"it has {', '.join(profiles[profile])}."
        )
    turned = {name: value for name, value in knobs.items() if value is not None}
    for name, value in turned.items():
        _check_knob(name, value, profiles[profile][name])
    return SimpleNamespace(PROFILE=profile, **{**profiles[profile], **turned})


def _check_knob(name: str, value: Any, default: Any) -> None:
    """Refuse a knob that isn't a positive number of its profile's kind, before any work is done."""
    if isinstance(default, bool) or not isinstance(default, int | float):
        return
    kinds, expected = (
        (int, "a whole number") if isinstance(default, int) else (int | float, "a number")
    )
    if isinstance(value, bool) or not isinstance(value, kinds) or not 0 < value < float("inf"):
        raise ValueError(f"{name} is {value!r}; it takes {expected} above 0, such as {default!r}.")


def environment(devices: Sequence[jax.Device]) -> dict[str, str | int | bool | None]:
    """Versions, devices and machine as this process sees them, for tables and for the report."""
    packages = ("jax", "jaxlib", "numpy", "optax", "matplotlib")
    return {
        "python": platform.python_version(),
        **{name: metadata.version(name) for name in packages},
        "backend": devices[0].platform,
        "device_kind": devices[0].device_kind,
        "device_count": len(devices),
        "simulated": simulated(devices),
        "driver": driver_version(),
        "cpu": _cpu_model(),
        "cores": _cores(),
    }


def simulated(devices: Sequence[jax.Device]) -> bool:
    """True where several devices share one CPU, so that no timing says anything about speed."""
    return len(devices) > 1 and devices[0].platform == "cpu"


def _wanted(count: int, min_count: int) -> int:
    if count < 0:
        raise ValueError(
            f"DEVICES is {count}; it takes a number of devices, or 0 for all there are."
        )
    if min_count < 1:
        raise ValueError(f"request_devices needs min_count >= 1, not {min_count}.")
    if 0 < count < min_count:
        raise ValueError(
            f"DEVICES is {count}, but this lesson needs at least {min_count}. "
            f"Set DEVICES to {min_count} or more, or to 0 for all there are."
        )
    return count or min_count


def _expected_gpus() -> int:
    text = os.environ.get("EXPECT_GPUS", "").strip() or "0"
    if not text.isdecimal():
        raise ValueError(f"EXPECT_GPUS is {text!r}; it takes a whole number of GPUs, such as 2.")
    return int(text)


def _check_expected(gpus: int, expected: int) -> None:
    if gpus < expected:
        causes = "".join(f"\n  - {problem}" for problem in gpu_problems())
        raise RuntimeError(
            f"EXPECT_GPUS asks for {expected} GPUs, but JAX sees {gpus}. Probable cause:{causes}"
        )


def _simulate(wanted: int) -> None:
    """Ask for at least `wanted` CPU devices; no effect if JAX has started."""
    flags = os.environ.get("XLA_FLAGS", "")
    from_flag = [int(n) for n in _COUNT_FLAG.findall(flags)]
    have = max([*from_flag, jax.config.jax_num_cpu_devices or 0])
    if have >= wanted:
        return
    with contextlib.suppress(RuntimeError):  # started already: the caller counts what there is
        jax.config.update("jax_num_cpu_devices", wanted)
        os.environ["XLA_FLAGS"] = " ".join(_COUNT_FLAG.sub("", flags).split())


def _cpu_devices() -> list[jax.Device]:
    try:
        return jax.devices("cpu")
    except RuntimeError:  # JAX_PLATFORMS leaves the CPU out
        return []


def _too_few(wanted: int, have: int) -> str:
    platforms = os.environ.get("JAX_PLATFORMS", "")
    if platforms and "cpu" not in platforms.split(","):
        return (
            f"{wanted} devices were asked for; there aren't that many accelerators, and "
            f"JAX_PLATFORMS={platforms!r} leaves out the CPU that could simulate them. Unset it "
            "and restart the kernel, or ask for fewer devices."
        )
    return (
        f"{wanted} devices were asked for, but JAX has already started with {have}, and that "
        "can't change while Python runs. Restart the kernel, and call request_devices before "
        "anything else uses JAX."
    )


def _in_one_line(devices: Sequence[jax.Device]) -> str:
    count, kind = len(devices), devices[0].device_kind
    cores = f"{_cores()} core{'s' if _cores() > 1 else ''}"
    if simulated(devices):
        return (
            f"{count} simulated CPU devices on this machine's {cores}: placement, "
            "communication and results are real, timings say nothing about speed."
        )
    if devices[0].platform == "cpu":
        return f"No GPU in use: JAX computes on this machine's CPU ({cores})."
    name = "GPU" if devices[0].platform in ("gpu", "cuda", "rocm") else devices[0].platform.upper()
    return f"{count} {name}{'s' if count > 1 else ''}: {kind}."


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _cpu_model() -> str:
    try:
        with open("/proc/cpuinfo") as lines:
            return next(line.split(":", 1)[1].strip() for line in lines if "model name" in line)
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
