"""What the runner knows of a run by itself; kernels add what they see."""

import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any


def now() -> str:
    """The time in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def runner_environment(folder: Path) -> dict[str, Any]:
    """When and with what a run of the lessons in `folder` starts."""
    commit = _git(folder, "rev-parse", "HEAD")
    changes = _git(folder, "status", "--porcelain") if commit else None
    return {
        "started": now(),
        "python": platform.python_version(),
        "git_commit": commit,
        "git_dirty": bool(changes) if changes is not None else None,
    }


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=folder, capture_output=True, text=True, timeout=30, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
