"""A folder that is not ours as a source: FASHION_MNIST_DIR, the system's package, the sample."""

import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from .cache import Cache
from .idx import Buffer, FileSpec, WrongData, gunzip, verify
from .keeper import Keeper
from .report import Absent, Unavailable, reason
from .sources import Found, Source


@dataclass
class Folder(Source):
    """Read, verified, and never written."""

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
        try:
            names = os.listdir(self.path)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise Absent(reason(error)) from None
        if not any("-ubyte" in name for name in names):
            raise Absent("holds none of the files")
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


def _read(path: Path, limit: int) -> tuple[bytes, os.stat_result]:
    if not stat.S_ISREG(os.stat(path).st_mode):  # a FIFO would block for ever
        raise WrongData("is not a regular file")
    with path.open("rb") as file:
        status = os.fstat(file.fileno())
        return file.read(limit), status
