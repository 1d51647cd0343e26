"""Where and with what the figures were measured."""

import datetime
import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

from benchmarks.variant import ROOT

PACKAGES = ("jax", "jaxlib", "optax", "numpy", "torch", "torchvision", "keras", "flax", "equinox")


def describe() -> dict[str, Any]:
    """Return machine, versions (None: not installed), UTC date and commit."""
    return {
        "machine": {
            "processor": processor(),
            "cores": len(os.sched_getaffinity(0)),
            "memory GB": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9),
            "system": f"{platform.system()} {platform.machine()}",
        },
        "versions": {"python": platform.python_version()} | {p: version(p) for p in PACKAGES},
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": commit(),
        "load before": load(),
    }


def load() -> float:
    """Processes that wanted a core in the last minute, on average."""
    return os.getloadavg()[0]


def processor() -> str:
    """The processor's name; Linux has it in /proc/cpuinfo, on x86 at least."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def version(package: str) -> str | None:
    """The version of an installed package."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def commit() -> str:
    """The commit that is checked out, with "+ changes" where files differ from it."""

    def git(*arguments: str) -> str:
        try:
            done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
        except OSError:  # no git here
            return ""
        return done.stdout.strip() if done.returncode == 0 else ""

    changed = git("status", "--porcelain", "--untracked-files=no")
    return (git("rev-parse", "--short=12", "HEAD") or "no git checkout") + (
        " + changes" if changed else ""
    )
