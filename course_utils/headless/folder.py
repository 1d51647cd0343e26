"""The folder that keeps one run: runs/<stamp>/, and runs/latest that points at it."""

import contextlib
import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from course_utils.headless.errors import UsageError


def write_atomically(path: Path, text: str) -> None:
    """Replace `path` by `text` in one step: a reader sees the old file or the new one."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        draft.write_text(text, encoding="utf-8", newline="\n")
        draft.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)
        raise


class Folder:
    """A new folder for a run; what cannot be written is noted in `problems`, not raised.

    A full disk must not cost the lessons that still run, nor end in a traceback.
    """

    def __init__(self, runs: Path) -> None:
        """Create runs/<UTC time>/, with a number behind if that second is taken."""
        self.problems: dict[Path, str] = {}
        try:
            self.path = _new(runs)
        except OSError as error:
            raise UsageError(f"Cannot create a folder in {runs}: {error.strerror}.") from error
        _point(runs / "latest", self.path.name)

    def keep(self, name: str, text: str) -> None:
        """Write `text` as UTF-8 to the file `name`."""
        path = self.path / name
        try:
            write_atomically(path, text)
        except OSError as error:
            self.problems[path] = error.strerror or str(error)
        else:
            self.problems.pop(path, None)

    def keep_json(self, name: str, value: Any) -> None:
        """Write `value` as strict JSON."""
        self.keep(name, json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def _new(runs: Path) -> Path:
    runs.mkdir(parents=True, exist_ok=True)
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    for name in [stamp, *(f"{stamp}-{n}" for n in range(2, 1000))]:
        with contextlib.suppress(FileExistsError):
            (runs / name).mkdir()
            return runs / name
    raise FileExistsError(f"1000 runs began in the second {stamp}")


def _point(link: Path, target: str) -> None:
    # Where links are not to be had, results are still found by their stamp.
    draft = link.with_name(f".latest.{target}")
    with contextlib.suppress(OSError, NotImplementedError):
        draft.symlink_to(target, target_is_directory=True)
        try:
            draft.replace(link)
        except OSError:
            draft.unlink()
