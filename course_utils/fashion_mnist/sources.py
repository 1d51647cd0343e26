"""The places that files come from: a folder, the cache, a web server."""

import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from . import download
from .cache import Cache
from .idx import Buffer, FileSpec, WrongData, gunzip, verify
from .keeper import Keeper
from .report import Absent, Unavailable, reason, say

Found = tuple[Buffer, str]  # a file's content, and where it came from


class Source:
    """What `gather` asks for files."""

    label: str  # names it where it failed
    each_file_counts = True  # what it lacks says nothing about its other files
    must_be_there = False  # somebody asked for it, so even its absence is worth a line

    def recall(self, spec: FileSpec, caches: list[Cache]) -> Found | None:
        """Return `spec`'s file if that needs no hash, no lock and no network."""

    def get(self, spec: FileSpec, keeper: Keeper) -> Found:
        """Return `spec`'s file, verified and, where that saves time later, kept.

        Raises Unavailable, WrongData or OSError with the reason why not.
        """
        raise NotImplementedError


@dataclass
class Folder(Source):
    """A folder that is not ours: read, verified, and never written."""

    label: str
    origin: str
    path: Path
    must_be_there: bool = False

    def recall(self, spec: FileSpec, caches: list[Cache]) -> Found | None:
        """Read the raw file, or map the cached content of the .gz, if known to be good."""
        with suppress(OSError, WrongData):
            # Read, not mapped: who owns this file may change it in place at any time.
            content, status = _read(self.path / spec.name, spec.size)
            if any(cache.knows(self.path / spec.name, status, spec) for cache in caches):
                return content, self.origin
            return None
        packed = self.path / f"{spec.name}.gz"
        with suppress(OSError):
            if any(cache.knows(packed, packed.stat(), spec) for cache in caches):
                kept = (cache.known(spec) for cache in caches)
                return next(((content, self.origin) for content in kept if content), None)
        return None

    def get(self, spec: FileSpec, keeper: Keeper) -> Found:
        """Verify the raw file, else unpack, verify and keep the .gz."""
        if recalled := self.recall(spec, keeper.caches):
            return recalled
        if not self.path.is_dir():
            raise Absent("not a folder" if self.path.exists() else "no such folder")
        problems = []
        for name, get in ((spec.name, self._raw), (f"{spec.name}.gz", self._packed)):
            try:
                return get(self.path / name, spec, keeper), self.origin
            except FileNotFoundError:
                continue
            except (OSError, WrongData) as error:
                problems.append(f"{name} {reason(error)}")
        if problems:
            raise Unavailable("; ".join(problems))
        raise Absent(f"{spec.name} is not there, raw or .gz")

    def _raw(self, path: Path, spec: FileSpec, keeper: Keeper) -> Buffer:
        content, status = _read(path, spec.size + 1)
        verify(content, spec)
        keeper.remember(path, status, spec)
        return content

    def _packed(self, path: Path, spec: FileSpec, keeper: Keeper) -> Buffer:
        packed, status = _read(path, spec.gz_limit)
        content = gunzip(packed, spec)
        verify(content, spec)
        keeper.keep(spec, content)
        keeper.remember(path, status, spec)
        return content


@dataclass
class Cached(Source):
    """The cache, and the temporary one that stands in for it."""

    caches: list[Cache]

    @property
    def label(self) -> str:
        """Name the folder."""
        return f"cache ({self.caches[0].folder if self.caches else 'no folder to have one in'})"

    def recall(self, spec: FileSpec, caches: list[Cache]) -> Found | None:
        """Map the file from the first cache that knows it to be good."""
        for cache in self.caches:
            if (content := cache.known(spec)) is not None:
                return content, f"cache {cache.folder}"
        return None

    def get(self, spec: FileSpec, keeper: Keeper) -> Found:
        """Map the file from the first cache where it is good; what is damaged is fetched again."""
        problems = []
        for cache in self.caches:
            try:
                return cache.checked(spec), f"cache {cache.folder}"
            except FileNotFoundError:
                continue
            except (OSError, WrongData) as error:
                problems.append(f"{cache.folder / spec.name} {reason(error)}")
        if problems:
            raise Unavailable("; ".join(problems))
        raise Absent("empty")


@dataclass
class Mirror(Source):
    """A web server with the four .gz files."""

    url: str
    each_file_counts = False  # after one failure it is not asked again
    _announced: bool = False

    @property
    def label(self) -> str:
        """Name the server."""
        return f"download ({self.url})"

    def get(self, spec: FileSpec, keeper: Keeper) -> Found:
        """Fetch, verify and keep the file."""
        if why := keeper.failure(self.url):
            raise Unavailable(f"{why}; another process has just tried")
        name = f"{spec.name}.gz"
        if not self._announced:
            say(f"downloading from {self.url}")
            self._announced = True
        try:
            content = gunzip(download.fetch(self.url + name, spec.gz_limit), spec)
            verify(content, spec)
        except (Unavailable, WrongData) as error:
            keeper.note_failure(self.url, f"{name}: {error}")
            raise Unavailable(f"{name}: {error}") from None
        keeper.keep(spec, content)
        return content, f"download {self.url}"


def _read(path: Path, limit: int) -> tuple[bytes, os.stat_result]:
    if not stat.S_ISREG(os.stat(path).st_mode):  # a FIFO would block for ever
        raise WrongData("is not a regular file")
    with path.open("rb") as file:
        status = os.fstat(file.fileno())
        return file.read(limit), status
