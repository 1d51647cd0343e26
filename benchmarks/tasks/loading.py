"""Readers of the data set's files, each in a process of its own: ours, the .gz files, and peers'."""

import gzip
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from course_utils import fashion_mnist
from course_utils.fashion_mnist import idx

RETURNED, READ = "ms until it returns", "ms until every byte is read"
Arrays = list[np.ndarray]


class Reader:
    """Reads the four files again and again; a subclass says how, and what it needs beforehand."""

    def __init__(self) -> None:
        self.scratch = Path(os.environ["BENCH_SCRATCH"])
        # Our own cache, filled from wherever the data set is; the other ways read what lies there.
        os.environ["XDG_CACHE_HOME"] = str(self.scratch / "cache")
        os.environ.pop("FASHION_MNIST_DIR", None)
        self.cache = self.scratch / "cache/jax-course/fashion-mnist"

    def prepare(self) -> None:
        fashion_mnist.load(allow_sample=False)
        self.make_ready()
        self.round()

    def make_ready(self) -> None:
        pass

    def read(self) -> Arrays:
        raise NotImplementedError

    def round(self) -> dict[str, float]:
        return {RETURNED: _milliseconds(self.read), READ: _milliseconds(self._read_bytes)}

    def _read_bytes(self) -> None:
        # A mapped file costs nothing until it is looked at.
        for array in self.read():
            np.bitwise_xor.reduce(array.ravel().view(np.uint64))


class Ours(Reader):
    """`course_utils.fashion_mnist.load` from its filled cache."""

    def read(self) -> Arrays:
        data = fashion_mnist.load(allow_sample=False)
        return [data.train_images, data.train_labels, data.test_images, data.test_labels]


class Packed(Reader):
    """The .gz files, unpacked and parsed: what a load without a cache does, hashing left out."""

    def make_ready(self) -> None:
        self.folder = pack(self.cache, self.scratch)

    def read(self) -> Arrays:
        return [
            idx.parse(gzip.decompress((self.folder / f"{spec.name}.gz").read_bytes()), spec)
            for spec in idx.FILES
        ]


class Torchvision(Reader):
    """torchvision's dataset of the raw files, as it reads them when it is made."""

    def make_ready(self) -> None:
        from torchvision.datasets import FashionMNIST

        folder = self.scratch / "torchvision/FashionMNIST/raw"
        if not folder.exists():
            folder.mkdir(parents=True)
            for spec in idx.FILES:
                shutil.copy(self.cache / spec.name, folder)
        self.dataset = FashionMNIST

    def read(self) -> Arrays:
        root = self.scratch / "torchvision"
        parts = [self.dataset(root, train=train) for train in (True, False)]
        return [array.numpy() for part in parts for array in (part.data, part.targets)]


class Keras(Reader):
    """`keras.datasets.fashion_mnist.load_data` with the .gz files where Keras keeps them."""

    def make_ready(self) -> None:
        import keras

        folder = Path(os.environ["KERAS_HOME"]) / "datasets/fashion-mnist"
        if not folder.exists():
            shutil.copytree(pack(self.cache, self.scratch), folder)
        self.load = keras.datasets.fashion_mnist.load_data

    def read(self) -> Arrays:
        return [array for part in self.load() for array in part]


def pack(cache: Path, scratch: Path) -> Path:
    """Return a folder with the four files as .gz, made on first use."""
    folder = scratch / "packed"
    if not folder.exists():
        folder.mkdir()
        for spec in idx.FILES:
            packed = gzip.compress((cache / spec.name).read_bytes(), 6)
            (folder / f"{spec.name}.gz").write_bytes(packed)
    return folder


def _milliseconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return 1000 * (time.perf_counter() - start)
