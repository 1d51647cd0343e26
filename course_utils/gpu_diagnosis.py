"""Why JAX may not see a GPU: the probable causes on this machine, each with its cure."""

import os
import subprocess
from importlib import metadata

_OLDEST_DRIVER = 525  # for the CUDA 12 wheels


def gpu_problems() -> list[str]:
    """Name what probably keeps JAX from this machine's GPUs; the likeliest first, never empty."""
    checks = (_platforms, _visible_devices, _driver, _plugin, _library_path)
    problems = [problem for check in checks if (problem := check())]
    return problems or [
        "no usual cause was found. Start Python with JAX_PLATFORMS=cuda: JAX then says why the "
        "CUDA backend doesn't start."
    ]


def driver_version() -> str | None:
    """Version of the NVIDIA driver, None where nvidia-smi doesn't answer."""
    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        answer = subprocess.run(query, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    lines = answer.stdout.split()
    return lines[0] if lines else None


def _platforms() -> str | None:
    chosen = os.environ.get("JAX_PLATFORMS", "")
    if chosen and not {"cuda", "gpu", "rocm"} & set(chosen.split(",")):
        return f"JAX_PLATFORMS is {chosen!r}, which leaves the GPU out: unset it."
    return None


def _visible_devices() -> str | None:
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None and visible.strip() in ("", "-1"):
        return f"CUDA_VISIBLE_DEVICES is {visible!r}, which hides every GPU: unset it."
    return None


def _driver() -> str | None:
    version = driver_version()
    if version is None:
        return (
            "nvidia-smi doesn't answer: no NVIDIA driver here, or none that this process can "
            "reach. In a container, ask for the GPU (nvidia.com/gpu) and put the driver's bin "
            "folder on PATH."
        )
    if version.split(".")[0].isdecimal() and int(version.split(".")[0]) < _OLDEST_DRIVER:
        return f"the driver is {version}; the CUDA 12 build of JAX needs {_OLDEST_DRIVER} or newer."
    return None


def _plugin() -> str | None:
    try:
        plugin = metadata.version("jax-cuda12-plugin")
    except metadata.PackageNotFoundError:
        return (
            "the CUDA build of JAX isn't installed (no package jax-cuda12-plugin): install "
            "requirements.txt, not requirements-cpu.txt."
        )
    jaxlib = metadata.version("jaxlib")
    if plugin != jaxlib:
        return (
            f"jax-cuda12-plugin is {plugin} but jaxlib is {jaxlib}; they must be the same: "
            "install requirements.txt anew."
        )
    return None


def _library_path() -> str | None:
    path = os.environ.get("LD_LIBRARY_PATH", "")
    other = [folder for folder in path.split(":") if "cuda" in folder.lower()]
    if other:
        return (
            f"LD_LIBRARY_PATH holds {other[0]!r}: libraries of another CUDA may be loaded in place "
            "of the ones that came with JAX. Unset it before Python starts."
        )
    return None
