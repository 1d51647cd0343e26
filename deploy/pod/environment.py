"""The locked packages, installed once onto the volume and reused at every start after that."""

import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from telling import Trouble, say

_FULL = ("No space left on device", "Disk quota exceeded")
_NEXT_TO_NOTHING = 2**20  # bytes
_NO_NETWORK = ("NewConnectionError", "Temporary failure in name resolution", "ConnectTimeoutError")
_NO_NETWORK += ("Network is unreachable", "No matching distribution", "ReadTimeoutError")


def ready(kept: Path, lock: bytes, course: Path | None) -> Path:
    """The Python of an environment that holds exactly `lock`, and `course` as a package.

    Where it can't be installed, an older one that is whole serves for now, and a line says so.
    """
    minor = f"{sys.version_info.major}.{sys.version_info.minor}"
    key = hashlib.sha256(minor.encode() + lock).hexdigest()[:12]
    folder = kept / f"env-{key}"
    try:
        if _stamp(folder) is None:
            _install(folder, lock)
        else:
            say("the environment is here already")
        _install_course(folder, course)
    except Trouble as trouble:
        older = [path for path in kept.glob("env-*") if _stamp(path) is not None]
        if not older:
            raise
        say(f"WARNING: {trouble}. {trouble.cure}")
        say(
            "Until then the environment of an earlier version is used; lessons may want newer packages."
        )
        return _python(max(older, key=lambda path: path.stat().st_mtime))
    for other in kept.glob("env-*"):
        if other != folder:
            shutil.rmtree(other, ignore_errors=True)
    return _python(folder)


def _python(folder: Path) -> Path:
    return folder / "bin/python"


def _install(folder: Path, lock: bytes) -> None:
    shutil.rmtree(folder, ignore_errors=True)  # what an interrupted start has left
    say("installing the environment, once for this volume: a few minutes")
    try:
        folder.mkdir(parents=True)
        (folder / "requirements.txt").write_bytes(lock)
        _do([sys.executable, "-m", "venv", str(folder)])
        _pip(folder, "--require-hashes", "--requirement", str(folder / "requirements.txt"))
        _write_stamp(folder, {"course": None})
    except (OSError, Trouble) as error:
        # Looked at before room is made: venv and pip don't always say what was short.
        full = shutil.disk_usage(folder.parent).free < _NEXT_TO_NOTHING
        shutil.rmtree(folder, ignore_errors=True)
        if isinstance(error, Trouble) and not full:
            raise
        raise _trouble([_FULL[0] if full else str(error)]) from error


def _install_course(folder: Path, course: Path | None) -> None:
    """Make `course_utils` importable from where it lies, so that an edit there counts."""
    project = course / "pyproject.toml" if course else None
    if project is None or not project.exists():
        return
    wanted = [str(course), hashlib.sha256(project.read_bytes()).hexdigest()]
    if (_stamp(folder) or {}).get("course") != wanted:
        _pip(folder, "--no-deps", "--no-build-isolation", "--editable", str(course))
        _write_stamp(folder, {"course": wanted})


def _pip(folder: Path, *arguments: str) -> None:
    quiet = ["--disable-pip-version-check", "--no-input", "--progress-bar=off", "--no-cache-dir"]
    _do([str(_python(folder)), "-m", "pip", "install", *quiet, *arguments])


def _do(command: list[str]) -> None:
    """Run a command, its lines as they come; Trouble with the likely cause if it fails."""
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as process:
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            print(line, end="", flush=True)
            lines.append(line)
    if process.returncode:
        raise _trouble(lines)


def _trouble(lines: list[str]) -> Trouble:
    text = "".join(lines)
    if any(sign in text for sign in _FULL):
        return Trouble(
            "the volume or the pod's scratch space is full: the environment doesn't fit",
            "Delete files in the workspace, or enlarge the volume (deploy/README.md, failures).",
        )
    if any(sign in text for sign in _NO_NETWORK):
        return Trouble(
            "the environment can't be installed: packages are not reachable from here",
            "Look at Cloud NAT and the network policies (deploy/README.md, failures).",
        )
    if "DO NOT MATCH THE HASHES" in text:
        return Trouble(
            "a package is not the one that the course was tested with: its hash differs",
            "Don't install it. Try again; if it stays so, tell the maintainers.",
        )
    last = lines[-1].strip() if lines else "it said nothing"
    return Trouble(f"the environment can't be installed: {last}", "The lines above say why.")


def _stamp(folder: Path) -> dict[str, Any] | None:
    """What was noted when the environment was whole; None if it never was."""
    try:
        return dict(json.loads((folder / "whole.json").read_text()))
    except (OSError, ValueError, TypeError):
        return None


def _write_stamp(folder: Path, stamp: dict[str, Any]) -> None:
    temporary = folder / "whole.json.new"
    temporary.write_text(json.dumps(stamp))
    temporary.replace(folder / "whole.json")
