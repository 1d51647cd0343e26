"""Collect the four files from the sources, one after the other."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from . import idx, settings, sources
from .cache import Cache
from .folder import Folder
from .idx import Buffer, FileSpec, WrongData
from .keeper import Keeper, cache_folders
from .report import Absent, Unavailable, reason, say, unavailable

SAMPLE_FOLDER = Path(__file__).parent / "sample"
# What make_sample writes and prints.
SAMPLE_FILES = (
    FileSpec(
        "train-images-idx3-ubyte",
        (6_000, 28, 28),
        "cf313073c7eb485392848071d5c433571d7166043e971e3345b095cc30518084",
    ),
    FileSpec(
        "train-labels-idx1-ubyte",
        (6_000,),
        "097b93fbcf9bd5bc648b1a457ddc55c9e4ab49afb33f9ecae8ce068399a75e3a",
    ),
    FileSpec(
        "t10k-images-idx3-ubyte",
        (1_000, 28, 28),
        "7cee33c3c6414b1b86c25e665a6c4f41584269de3b7cc9768b1d351922845eef",
    ),
    FileSpec(
        "t10k-labels-idx1-ubyte",
        (1_000,),
        "3128d790775889812b73c4f13923559c8b9e281d112c6ea7862acf60a206a909",
    ),
)


@dataclass
class Gathered:
    """What has been found so far, and what was tried in vain."""

    missing: list[FileSpec]
    content: dict[str, Buffer] = field(default_factory=dict)
    origins: list[str] = field(default_factory=list)
    tried: list[tuple[str, str]] = field(default_factory=list)

    @property
    def source(self) -> str:
        """Where the files came from: mostly one place."""
        return " + ".join(dict.fromkeys(self.origins))

    def take(self, spec: FileSpec, found: sources.Found) -> None:
        """Note that `spec`'s file is found."""
        self.content[spec.name] = found[0]
        self.origins.append(found[1])
        self.missing.remove(spec)


def gather(allowed: tuple[str, ...], trust: bool) -> Gathered:
    """Ask the allowed sources for the four files; `trust` files that were verified before."""
    folders = cache_folders() if "cache" in allowed else []
    caches = [Cache(folder, trust) for folder in folders]
    asked = list(settings.asked(allowed, caches))
    gathered = Gathered(list(idx.FILES))
    first_choice = asked[0] if asked else None
    if first_choice:
        recalled = [(spec, first_choice.recall(spec, caches)) for spec in idx.FILES]
        if all(found for _, found in recalled):
            for spec, found in recalled:
                gathered.take(spec, found)
            return gathered
    with Keeper(caches) as keeper:
        _ask_all(asked, keeper, gathered)
    return gathered


def _ask_all(asked: Iterable[sources.Source], keeper: Keeper, gathered: Gathered) -> None:
    for source in asked:
        reasons = {}
        for spec in list(gathered.missing):
            try:
                gathered.take(spec, source.get(spec, keeper))
            except (Unavailable, WrongData, OSError) as error:
                reasons[reason(error)] = not isinstance(error, Absent)
                if not source.each_file_counts:
                    break
        if reasons:
            gathered.tried.append((source.label, "; ".join(reasons)))
        if any(reasons.values()) or (reasons and source.must_be_there):
            say(f"{source.label}: {'; '.join(reasons)}; trying the next source")


def sample(tried: list[tuple[str, str]]) -> tuple[Gathered, tuple[FileSpec, ...]]:
    """Return the bundled sample and its specs; DatasetUnavailable if even that is damaged."""
    folder = Folder("sample", "sample of 6,000 + 1,000 images, bundled", SAMPLE_FOLDER)
    gathered = Gathered(list(SAMPLE_FILES))
    with Keeper([]) as nothing_kept:
        _ask_all([folder], nothing_kept, gathered)
    if gathered.missing:
        raise unavailable([*tried, *gathered.tried], sample_refused=False)
    return gathered, SAMPLE_FILES
