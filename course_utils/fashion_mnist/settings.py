"""What the environment says: which sources are asked for the files, in which order.

FASHION_MNIST_DIR      a folder with the four files, raw or .gz; only ever read. Raw files are
                       used where they are; a .gz is unpacked into the cache once.
FASHION_MNIST_MIRRORS  base URLs, separated by spaces, in place of the public ones.
FASHION_MNIST_SOURCES  which sources may be used: a comma-separated part of `ORDER`. Without
                       "cache" nothing is written anywhere.
XDG_CACHE_HOME         holds the cache, in place of ~/.cache.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from .cache import Cache
from .folder import Folder
from .sources import Cached, Mirror, Source

ORDER = ("directory", "cache", "package", "download", "sample")
PACKAGE_FOLDER = Path("/usr/share/datasets/fashion-mnist")  # Debian: dataset-fashion-mnist
MIRRORS = (
    "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
    "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
)


def allowed() -> tuple[str, ...]:
    """Return the sources that FASHION_MNIST_SOURCES allows, or all; ValueError for unknown ones."""
    names = [name.strip() for name in os.environ.get("FASHION_MNIST_SOURCES", "").split(",")]
    names = [name for name in names if name]
    if unknown := [name for name in names if name not in ORDER]:
        raise ValueError(
            f"FASHION_MNIST_SOURCES names {', '.join(unknown)}; valid are: {', '.join(ORDER)}"
        )
    return tuple(name for name in ORDER if name in names) if names else ORDER


def asked(allowed: tuple[str, ...], caches: list[Cache]) -> Iterator[Source]:
    """Yield the sources of the whole data set that are allowed and set, first choice first."""
    if (folder := os.environ.get("FASHION_MNIST_DIR")) and "directory" in allowed:
        path = Path(folder).expanduser().absolute()
        yield Folder(f"FASHION_MNIST_DIR={folder}", f"directory {folder}", path, must_be_there=True)
    if "cache" in allowed:
        yield Cached(caches)
    if "package" in allowed:
        yield Folder(
            f"system package ({PACKAGE_FOLDER})", f"system package {PACKAGE_FOLDER}", PACKAGE_FOLDER
        )
    if "download" in allowed:
        for url in os.environ.get("FASHION_MNIST_MIRRORS", "").split() or MIRRORS:
            yield Mirror(url.rstrip("/") + "/")
