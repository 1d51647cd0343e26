"""Keep compiled programs between runs: the second run of a lesson reads what the first compiled.

JAX has the cache; this module chooses where it lies, bounds it, and mends what a killed process
left. It is on in every lesson, through `request_devices`. JAX's own switches come first:
JAX_ENABLE_COMPILATION_CACHE=false turns it off, JAX_COMPILATION_CACHE_DIR puts it elsewhere (and
leaves its other settings to you).
"""

import contextlib
import hashlib
import platform
import re
import warnings
from pathlib import Path

import filelock
import jax
from jax.experimental.compilation_cache import compilation_cache

from course_utils.user_cache import user_cache

MAX_BYTES = 512 * 1024 * 1024
_CPU_FEATURES = re.compile(r"^(?:flags|Features)\s*:\s*(.+)$", re.MULTILINE)


def keep_compiled_programs() -> Path | None:
    """Have JAX keep what it compiles from now on; may be called again.

    Every program is kept, however small, up to `MAX_BYTES` in all; those unused for longest go
    first. Several kernels may share the folder: a lock that JAX takes guards it. A folder that
    can't be written, or that stops being writable, costs time and nothing else.

    Returns:
        The folder in use, or None where the cache is off.
    """
    if not jax.config.jax_enable_compilation_cache:
        return None
    if chosen := jax.config.jax_compilation_cache_dir:
        return Path(chosen)
    try:
        folder = user_cache() / "compiled" / _processor()
        folder.mkdir(parents=True, exist_ok=True)
        _mend(folder)
    except (OSError, RuntimeError):  # no home directory, not writable, or locked for long
        return None
    # One line for each program that could not be kept would bury the lesson.
    warnings.filterwarnings("ignore", message="Error (reading|writing) persistent compilation")
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_compilation_cache_max_size", MAX_BYTES)
    # At their defaults these keep nothing of a small network: each program compiles in too
    # short a time, and together they take half a minute.
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    compilation_cache.reset_cache()  # JAX looks at the settings at its first compilation only
    return folder


def _processor() -> str:
    """A short name for the instructions that this processor has.

    XLA compiles for them, and a home directory may be shared by machines that differ.
    """
    features = ""
    with contextlib.suppress(OSError):
        found = _CPU_FEATURES.search(Path("/proc/cpuinfo").read_text())
        features = " ".join(sorted(found[1].split())) if found else ""
    known = f"{platform.machine()} {platform.processor()} {features}"
    return f"{platform.machine()}-{hashlib.sha256(known.encode()).hexdigest()[:8]}"


def _mend(folder: Path) -> None:
    """Delete entries that a process began to write and didn't finish.

    JAX writes a program, then the time of its last use. With one of the two missing, JAX would
    never use that entry, and never keep another one either: its search for the oldest fails.
    """
    with filelock.FileLock(folder / ".lockfile", timeout=10):
        programs = {path.name.removesuffix("-cache") for path in folder.glob("*-cache")}
        times = {path.name.removesuffix("-atime") for path in folder.glob("*-atime")}
        short = {name for name in programs & times if _size(folder / f"{name}-atime") != 8}
        for name in (programs ^ times) | short:
            (folder / f"{name}-cache").unlink(missing_ok=True)
            (folder / f"{name}-atime").unlink(missing_ok=True)


def _size(path: Path) -> int:
    return path.stat().st_size
