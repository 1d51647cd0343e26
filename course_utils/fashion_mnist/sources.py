"""What gives files: the rule for all sources, the cache, a web server (`folder` has the rest)."""

from dataclasses import dataclass

from . import download
from .cache import Cache
from .idx import Buffer, FileSpec, WrongData, gunzip, verify
from .keeper import Keeper
from .report import Absent, Unavailable, reason, say

Found = tuple[Buffer, str]  # a file's content, and where it came from


class Source:
    """What is asked for files, one after the other."""

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
