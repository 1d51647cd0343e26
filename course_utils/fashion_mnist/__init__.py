"""The data set of the course: find, fetch, verify, cache, load as NumPy arrays.

Fashion-MNIST (Zalando Research, MIT licence): 60,000 + 10,000 grey images of 28 x 28 pixels
in 10 classes. Where it may come from, and the environment variables: see `settings`.
"""

from dataclasses import dataclass, field

import numpy as np

from . import idx, settings
from .gathering import gather, sample
from .idx import parse
from .report import DatasetUnavailable, say_sample, unavailable

__all__ = ["CLASS_NAMES", "DatasetUnavailable", "FashionMNIST", "load"]

CLASS_NAMES = (
    "T-shirt/top",
    "Trouser",
    "Pullover",
    "Dress",
    "Coat",
    "Sandal",
    "Shirt",
    "Sneaker",
    "Bag",
    "Ankle boot",
)


@dataclass(frozen=True, eq=False)
class FashionMNIST:
    """The two splits as read-only uint8 arrays.

    Attributes:
        train_images: (60000, 28, 28), 0 is the background. The sample has 6000.
        train_labels: (60000,), indices into `class_names`.
        test_images: (10000, 28, 28). The sample has 1000.
        test_labels: (10000,).
        class_names: ten names.
        source: where the data came from, for people; starts with "sample" for the sample.
    """

    train_images: np.ndarray = field(repr=False)
    train_labels: np.ndarray = field(repr=False)
    test_images: np.ndarray = field(repr=False)
    test_labels: np.ndarray = field(repr=False)
    class_names: tuple[str, ...]
    source: str

    @property
    def complete(self) -> bool:
        """True for the whole 60,000 + 10,000 images, False for the bundled sample."""
        return len(self.train_images) == 60_000 and len(self.test_images) == 10_000


def load(allow_sample: bool = True, verify: bool = False) -> FashionMNIST:
    """Load Fashion-MNIST from the first source that has it, keeping it in the cache.

    The sources are a directory (FASHION_MNIST_DIR), the cache, the system's package, a download,
    and the bundled sample of 6,000 + 1,000 images, which says loudly that it is one. Each file
    is verified by its SHA-256 before it is first used; after that, and with the cache filled, a
    load maps the files, looks at their size and modification time only, and prints nothing.

    Args:
        allow_sample: False refuses the bundled sample.
        verify: hash every file again, even those that look unchanged since they were verified.

    Returns:
        Read-only uint8 arrays, with `source` and `complete` to tell what was found.

    Raises:
        DatasetUnavailable: no source has the whole of it and the sample is refused (or cannot
            be read); the message lists every source with its reason, and the cure.
        ValueError: FASHION_MNIST_SOURCES names an unknown source.
    """
    allowed = settings.allowed()
    found = gather(allowed, trust=not verify)
    specs = idx.FILES
    if found.missing:
        if not allow_sample or "sample" not in allowed:
            raise unavailable(found.tried, sample_refused="sample" in allowed)
        found, specs = sample(found.tried)
        say_sample(specs[0].shape[0], specs[2].shape[0])
    return FashionMNIST(
        *(parse(found.content[spec.name], spec) for spec in specs),
        class_names=CLASS_NAMES,
        source=found.source,
    )
