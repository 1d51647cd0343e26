"""Where verified files are kept: in the cache, else in a temporary one, else in memory only."""

import contextlib
import os
import stat
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from course_utils.user_cache import user_cache

from .cache import Cache
from .idx import FileSpec
from .report import reason, say


def cache_folders() -> list[Path]:
    """Return the user's cache folder and the temporary one that stands in for it.

    The temporary folder has one fixed name for each user, so that it is found again and
    there is never more than one; a folder of that name that is not the user's own is no option.
    """
    folders = []
    with contextlib.suppress(RuntimeError):  # a container's user without a home
        folders.append(user_cache() / "fashion-mnist")
    try:
        user = os.getuid() if hasattr(os, "getuid") else "user"
        temporary = Path(tempfile.gettempdir()) / f"jax-course-fashion-mnist-{user}"
        if _is_ours_or_free(temporary):
            folders.append(temporary)
    except OSError:
        pass  # no temporary directory at all
    return folders


def _is_ours_or_free(folder: Path) -> bool:
    try:
        status = folder.lstat()
    except FileNotFoundError:
        return True
    if not hasattr(os, "getuid"):
        return stat.S_ISDIR(status.st_mode)
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid()


class Keeper:
    """Keeps files in the first of `caches` that can be locked and written.

    A context manager: inside it the lock on that cache is held, so that of many processes one
    fetches while the others wait. It speaks of a cache that fails only when there is a file to
    keep: one that is read-only and full is as good as any.
    """

    def __init__(self, caches: list[Cache]):
        self.caches = caches
        self.started = time.time()
        self._untried = list(caches)
        self._current: Cache | None = None
        self._troubles: list[str] = []
        self._held = ExitStack()

    def __enter__(self):
        self._advance()
        return self

    def __exit__(self, *exception):
        self._held.close()

    def keep(self, spec: FileSpec, content: bytes) -> None:
        """Store verified `content`; whatever fails is said, and the caller's copy still serves."""
        while self._current:
            try:
                self._current.store(spec, content)
                break
            except OSError as error:
                self._troubles.append(_trouble(self._current, error))
                self._advance()
        if self._troubles:
            place = self._current.folder if self._current else "the memory of this process only"
            say(f"{' and '.join(self._troubles)}; keeping the data in {place}")
        self._troubles = []

    def remember(self, path: Path, status: os.stat_result, spec: FileSpec) -> None:
        """Record in the cache in use that the file at `path`, anywhere, was verified."""
        if self._current:
            self._current.remember(path, status, spec)

    def note_failure(self, source: str, why: str) -> None:
        """Tell the processes that wait for the lock that `source` is not worth their time."""
        if self._current:
            self._current.note_failure(source, why)

    def failure(self, source: str) -> str | None:
        """Return why `source` failed for another process while this one waited, if it did."""
        return self._current.failure_since(source, self.started) if self._current else None

    def _advance(self) -> None:
        self._held.close()
        self._current = None
        while self._untried and not self._current:
            cache = self._untried.pop(0)
            try:
                self._held.enter_context(cache.lock())
                self._current = cache
            except OSError as error:
                self._troubles.append(_trouble(cache, error))


def _trouble(cache: Cache, error: OSError) -> str:
    return f"the cache {cache.folder} cannot be written ({reason(error)})"
