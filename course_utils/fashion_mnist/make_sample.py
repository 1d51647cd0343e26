"""Make the bundled sample from the whole data set: python -m course_utils.fashion_mnist.make_sample.

The first 600 training and 100 test images of each class, in their order: the published order
is already shuffled, so that is a fair draw and the same one each time.
"""

import gzip
import hashlib
from pathlib import Path

import numpy as np

from . import FashionMNIST, load
from .gathering import SAMPLE_FOLDER
from .idx import FILES, FileSpec

TRAIN_PER_CLASS = 600
TEST_PER_CLASS = 100


def first_per_class(labels: np.ndarray, count: int) -> np.ndarray:
    """Return the ascending indices of the first `count` examples of each class; labels (n,)."""
    chosen = [np.flatnonzero(labels == label)[:count] for label in np.unique(labels)]
    return np.sort(np.concatenate(chosen))


def sample_arrays(whole: FashionMNIST) -> tuple[np.ndarray, ...]:
    """Return the sample's train images, train labels, test images and test labels, uint8."""
    train = first_per_class(whole.train_labels, TRAIN_PER_CLASS)
    test = first_per_class(whole.test_labels, TEST_PER_CLASS)
    return (
        whole.train_images[train],
        whole.train_labels[train],
        whole.test_images[test],
        whole.test_labels[test],
    )


def to_idx(array: np.ndarray) -> bytes:
    """Return a uint8 array as an IDX file's bytes."""
    header = np.array([0x0800 + array.ndim, *array.shape], ">u4")
    return header.tobytes() + np.ascontiguousarray(array, np.uint8).tobytes()


def write(folder: Path) -> list[FileSpec]:
    """Write the sample's four .gz files into `folder`; returns the specs to put into gathering.py."""
    specs = []
    for whole_spec, array in zip(FILES, sample_arrays(load(allow_sample=False)), strict=True):
        content = to_idx(array)
        packed = gzip.compress(content, compresslevel=9, mtime=0)
        (folder / f"{whole_spec.name}.gz").write_bytes(packed)
        digest = hashlib.sha256(content).hexdigest()
        specs.append(FileSpec(whole_spec.name, array.shape, digest))
    return specs


if __name__ == "__main__":
    for spec in write(SAMPLE_FOLDER):
        print(spec)
