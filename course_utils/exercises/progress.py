"""Which exercises a participant has solved, kept from lesson to lesson.

JAX_COURSE_PROGRESS  a folder that keeps it, or "off": nothing is kept then.
XDG_STATE_HOME       holds the folder jax-course otherwise, in place of ~/.local/state.

Progress is a courtesy: whatever is wrong with the folder, the lesson goes on.
"""

import contextlib
import json
import os
from datetime import UTC, datetime
from pathlib import Path

from course_utils.atomic import write_atomically

VARIABLE = "JAX_COURSE_PROGRESS"
OFF = "off"
LOCK_WAIT_S = 2.0  # a writer is done in milliseconds


def keep(id: str, course: tuple[str, ...]) -> str:
    """Note that an exercise is solved; returns how far the course is, in words, empty if off.

    Args:
        id: the exercise.
        course: the ids of all exercises there are; what was solved of others doesn't count.
    """
    if os.environ.get(VARIABLE, "").strip().lower() == OFF:
        return ""
    try:
        solved = _add(folder(), id)
    except (OSError, RuntimeError) as error:
        why = getattr(error, "strerror", None) or str(error)
        return f"Your progress could not be kept ({why}). Set {VARIABLE} to a folder to write in."
    lesson = id.partition(".")[0]
    here = [one for one in course if one.partition(".")[0] == lesson]
    return (
        f"Solved in this lesson: {_of(here, solved)}. "
        f"In the whole course: {_of(course, solved)} exercises."
    )


def _of(ids: list[str] | tuple[str, ...], solved: dict[str, str]) -> str:
    return f"{sum(one in solved for one in ids)} of {len(ids)}"


def folder() -> Path:
    """The folder that keeps the progress; RuntimeError for a user without a home."""
    if given := os.environ.get(VARIABLE, "").strip():
        return Path(given).expanduser()
    base = os.environ.get("XDG_STATE_HOME", "")
    # The XDG specification has relative paths ignored.
    state = Path(base) if os.path.isabs(base) else Path.home() / ".local" / "state"
    return state / "jax-course"


def _add(folder: Path, id: str) -> dict[str, str]:
    """Note one id; returns all that are solved, with the time of the first success."""
    from filelock import FileLock, Timeout  # only where something has been solved

    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "progress.json"
    try:
        with FileLock(folder / ".progress.lock", timeout=LOCK_WAIT_S):
            solved = _read(path)
            if id not in solved:
                solved[id] = datetime.now(UTC).isoformat(timespec="seconds")
                write_atomically(path, json.dumps({"solved": solved}, indent=1) + "\n")
    except Timeout as error:
        raise OSError(f"another kernel holds {folder}") from error
    except NotImplementedError as error:  # filelock: a file system without locks
        raise OSError(str(error)) from error
    return solved


def _read(path: Path) -> dict[str, str]:
    """What the file holds; one that can't be understood is put aside, and all begins anew."""
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return {}
    try:
        solved = json.loads(text)["solved"]
        return {str(id): str(when) for id, when in solved.items()}
    except (ValueError, LookupError, TypeError, AttributeError):
        with contextlib.suppress(OSError):
            path.replace(path.with_suffix(".broken"))
        return {}
