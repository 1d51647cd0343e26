"""The folder that keeps one run: runs/<stamp>/, and runs/latest that points at it."""

import contextlib
import errno
import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from course_utils.atomic import write_atomically
from course_utils.headless.errors import UsageError

# Room that a run holds back, so that its last words still fit on a disk that a lesson filled.
RESERVES = (4_000_000, 1_000_000, 250_000)
LAST_WORDS = ("results.json", "index.html")
FULL = (errno.ENOSPC, errno.EDQUOT)


class Folder:
    """The folder of a run; what cannot be written is noted in `problems`, not raised.

    A full disk must not cost the lessons that still run, nor end in a traceback.
    """

    def __init__(self, runs: Path, again: Path | None = None) -> None:
        """Create runs/<UTC time>/, with a number behind if that second is taken.

        Args:
            runs: keeps the folders of all runs.
            again: a run to go on with, instead of a new one.

        Raises:
            UsageError: the folder cannot be made, or another runner is at work in it.
        """
        self.problems: dict[Path, str] = {}
        try:
            self.path = again or _new(runs)
            self._held = _hold(self.path)
        except OSError as error:
            raise UsageError(
                f"Cannot create a folder in {runs}: {error.strerror}. Keep the runs elsewhere: "
                "python -m course_utils.headless --output DIR."
            ) from error
        _point(runs / "latest", self.path.name)

    def keep(self, name: str, text: str) -> None:
        """Write `text` as UTF-8 to the file `name`."""
        path = self.path / name
        try:
            self._write(path, text)
        except OSError as error:
            self.problems[path] = error.strerror or str(error)
        else:
            self.problems.pop(path, None)

    def _write(self, path: Path, text: str) -> None:
        try:
            write_atomically(path, text)
        except OSError as error:
            if error.errno not in FULL or path.name not in LAST_WORDS or not self._reserve.exists():
                raise
            self.release()
            write_atomically(path, text)
            self.reserve()

    def keep_json(self, name: str, value: Any) -> None:
        """Write `value` as strict JSON."""
        self.keep(name, json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n")

    @property
    def _reserve(self) -> Path:
        return self.path / ".reserve"

    def reserve(self) -> None:
        """Hold back room on the disk for results.json and index.html."""
        for size in RESERVES:
            with contextlib.suppress(OSError):
                self._reserve.write_bytes(bytes(size))
                return
            self.release()

    def release(self) -> None:
        """Give that room back."""
        with contextlib.suppress(OSError):
            self._reserve.unlink(missing_ok=True)


def _new(runs: Path) -> Path:
    runs.mkdir(parents=True, exist_ok=True)
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    for name in [stamp, *(f"{stamp}-{n}" for n in range(2, 1000))]:
        with contextlib.suppress(FileExistsError):
            (runs / name).mkdir()
            return runs / name
    raise FileExistsError(f"1000 runs began in the second {stamp}")


def _hold(path: Path) -> int | None:
    """Lock the folder for as long as this process lives: no file stays, whatever ends it."""
    try:
        import fcntl
    except ImportError:  # Windows
        return None
    handle = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(handle)
        raise UsageError(f"Another runner is still at work in {path}.") from error
    except OSError:  # a file system without locks
        os.close(handle)
        return None
    return handle


def _point(link: Path, target: str) -> None:
    # Where links are not to be had, results are still found by their stamp.
    draft = link.with_name(f".latest.{target}")
    with contextlib.suppress(OSError, NotImplementedError):
        draft.symlink_to(target, target_is_directory=True)
        try:
            draft.replace(link)
        except OSError:
            draft.unlink()
