"""Python, and the installed packages against the locked ones."""

import re
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from course_utils.check.row import Row

ROOT = Path(__file__).resolve().parents[2]
OLDEST = (3, 11)
CUDA = ("cuda12", "cuda13")
REINSTALL = "Install what is locked: remove the folder .venv, then make setup."
PINNED = re.compile(r"^([\w.-]+)==(\S+)\s*(?:;\s*([^\\]+))?")


def python(version: tuple[int, ...] = sys.version_info[:3]) -> Row:
    """The Python that runs this."""
    found = ".".join(map(str, version))
    if version < OLDEST:
        cure = "The course needs Python 3.11 or newer: make setup PYTHON=python3.12."
        return Row("FAIL", "Python", found, cure)
    return Row("OK", "Python", f"{found}, {sys.prefix}")


def locked_packages() -> Row:
    """Each package of the lock that belongs to this installation, and its version."""
    lock = ROOT / ("requirements.txt" if plugins() else "requirements-cpu.txt")
    if not lock.is_file():
        return Row("WARN", "Packages", f"no {lock.name} to compare with", "Run from a checkout.")
    wanted = dict(pinned(lock.read_text(encoding="utf-8")))
    have = {name: installed(name) for name in wanted}
    missing = [name for name in wanted if have[name] is None]
    other = [
        f"{n} {have[n]} (locked: {wanted[n]})" for n in wanted if have[n] not in (None, wanted[n])
    ]
    if missing:
        return Row("FAIL", "Packages", f"missing: {_some(missing)}", REINSTALL)
    if other:
        cure = f"Fine if you try newer ones on purpose. Otherwise: {REINSTALL}"
        return Row("WARN", "Packages", f"not as locked: {_some(other)}", cure)
    return Row("OK", "Packages", f"all {len(wanted)} as locked in {lock.name}")


def pinned(lock: str) -> Iterator[tuple[str, str]]:
    """(name, version) of each line of a requirements file that counts on this machine."""
    from packaging.markers import Marker  # comes with matplotlib

    for line in lock.splitlines():
        match = PINNED.match(line)
        if match and (not match[3] or Marker(match[3].strip()).evaluate()):
            yield match[1], match[2]


def jax_versions() -> Row:
    """JAX, jaxlib and the parts of its CUDA build belong together."""
    jax, jaxlib = installed("jax"), installed("jaxlib")
    if not jax or not jaxlib:
        return Row("FAIL", "JAX", "jax or jaxlib is not installed", REINSTALL)
    found = f"jax {jax}, jaxlib {jaxlib}"
    parts = plugins()
    if not parts:
        return Row("OK" if jax == jaxlib else "WARN", "JAX", f"{found}, CPU build", REINSTALL)
    found += "".join(f", {name} {at}" for name, at in parts.items())
    if any(at != jaxlib for at in parts.values()):
        return Row("FAIL", "JAX", f"{found}: not the same", REINSTALL)
    if len(parts) % 2:
        return Row("FAIL", "JAX", f"{found}: the other half of the CUDA build lacks", REINSTALL)
    return Row("OK" if jax == jaxlib else "WARN", "JAX", found, REINSTALL)


def plugins() -> dict[str, str]:
    """The parts of JAX's CUDA build that are installed, with their versions."""
    names = [f"jax-{cuda}-{part}" for cuda in CUDA for part in ("plugin", "pjrt")]
    return {name: at for name in names if (at := installed(name))}


def installed(name: str) -> str | None:
    """The installed version of a distribution, None if there is none."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _some(names: list[str], most: int = 4) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
