"""A folder of verified, uncompressed files, safe with many processes and sudden deaths.

Only the holder of the folder's lock writes; each file appears under its name by one rename;
`verified.json` records size and modification time of each file that was seen to be good, so
that a later load needs no hash and a file that changed since is noticed.
"""

import json
import mmap
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from .idx import Buffer, FileSpec, WrongData, verify
from .report import say

LOCK_WAIT_S = 900.0  # a slow class network fetches 31 MB in less
LOCK_PATIENCE_S = 5.0  # then the learner is told what the wait is for


class Cache:
    """The files under `folder`, which may be missing or read-only.

    `trust` lets `known` rely on verified.json; without it every file is hashed again.
    """

    def __init__(self, folder: Path, trust: bool = True):
        self.folder = folder
        self.trust = trust
        self.is_locked = False

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the lock on the folder, made if missing; OSError when that cannot be had."""
        from filelock import FileLock, Timeout  # a load from a filled cache needs none

        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = FileLock(self.folder / ".lock")
        try:
            try:
                lock.acquire(timeout=LOCK_PATIENCE_S)
            except Timeout:
                say(f"waiting for another process that is filling {self.folder}")
                lock.acquire(timeout=LOCK_WAIT_S)
        except Timeout:
            wait = LOCK_PATIENCE_S + LOCK_WAIT_S
            raise TimeoutError(f"another process has held its lock for {wait:.0f} s") from None
        except NotImplementedError as error:  # filelock: a file system without locks
            raise OSError(str(error)) from None
        try:
            for leftover in self.folder.glob(".*.tmp"):  # only killed processes leave these
                leftover.unlink(missing_ok=True)
            self.is_locked = True
            yield
        finally:
            self.is_locked = False
            lock.release()

    def knows(self, path: Path, status: os.stat_result, spec: FileSpec) -> bool:
        """Tell whether the file at `path` with this `status` was seen to hold `spec`'s content."""
        seen = self._read_notes("verified.json").get(self._key(path))
        return self.trust and seen == [status.st_size, status.st_mtime_ns, spec.sha256]

    def remember(self, path: Path, status: os.stat_result, spec: FileSpec) -> None:
        """Record that the file at `path` holds `spec`'s content (possibly packed)."""
        self._note(
            "verified.json", self._key(path), [status.st_size, status.st_mtime_ns, spec.sha256]
        )

    def known(self, spec: FileSpec) -> Buffer | None:
        """Map `spec`'s file if it is here and unchanged since it was verified; hashes nothing."""
        with suppress(OSError, WrongData):
            content, status = _map(self.folder / spec.name)
            if self.knows(self.folder / spec.name, status, spec):
                return content
        return None

    def checked(self, spec: FileSpec) -> Buffer:
        """Map `spec`'s file and verify it; WrongData or OSError when it is not good."""
        content, status = _map(self.folder / spec.name)
        if not self.knows(self.folder / spec.name, status, spec):
            verify(content, spec)
            self.remember(self.folder / spec.name, status, spec)
        return content

    def store(self, spec: FileSpec, content: bytes) -> None:
        """Write verified `content` as `spec`'s file, all of it or, with an OSError, nothing."""
        path = self.folder / spec.name
        self.remember(path, _write(path, content), spec)

    def note_failure(self, source: str, why: str) -> None:
        """Leave word that `source` has just failed, for the processes that wait for the lock."""
        self._note("failed.json", source, [time.time(), why])

    def failure_since(self, source: str, moment: float) -> str | None:
        """Return why `source` failed for another process after `moment` (Unix time), if it did."""
        failed_at, why = self._read_notes("failed.json").get(source, (0.0, None))
        return why if failed_at >= moment else None

    def _key(self, path: Path) -> str:
        """Return a cached file's name, so that the folder may move, and any other file's path."""
        return path.name if path.parent == self.folder else str(path)

    def _read_notes(self, name: str) -> dict:
        try:
            notes = json.loads((self.folder / name).read_bytes())
        except (OSError, ValueError):
            return {}  # no notes, or damaged ones: the files are looked at afresh
        return notes if isinstance(notes, dict) else {}

    def _note(self, name: str, key: str, value: list) -> None:
        if not self.is_locked:
            return
        with suppress(OSError):  # what is not noted is only looked at again
            notes = json.dumps({**self._read_notes(name), key: value}, indent=1)
            _write(self.folder / name, notes.encode())


def _map(path: Path) -> tuple[Buffer, os.stat_result]:
    """Map a file read-only: safe here, where files are replaced but never changed in place."""
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise WrongData("is not a regular file")
    with path.open("rb") as file:
        status = os.fstat(file.fileno())
        if status.st_size == 0:
            raise WrongData("is empty")
        try:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), status
        except OSError:  # a file system that cannot map
            return file.read(), status


def _write(path: Path, content: bytes) -> os.stat_result:
    """Write a whole file under a hidden name beside `path`, then rename it."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
            status = os.fstat(file.fileno())
        temporary.replace(path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    return status
