"""How long a lesson waits for its data: python benchmarks/fashion_mnist_load.py.

Three ways to the same arrays, interleaved in one run, medians over the repeats:

- cached: `course_utils.fashion_mnist.load` from its filled cache;
- gz:     the four .gz files, unpacked and parsed (what a load without a cache does);
- torch:  torchvision's own reader on the four raw files.

A mapped file costs nothing until it is looked at, so each way is timed as it returns, with every
page touched, with every byte read, and with the pixels summed, which adds the same
arithmetic to each. torchvision is no dependency of the course. Without it that row is left out; for it:

    python3 -m venv /tmp/torchvision
    /tmp/torchvision/bin/pip install torch torchvision filelock tqdm
    PYTHONPATH=. /tmp/torchvision/bin/python benchmarks/fashion_mnist_load.py
"""

import argparse
import gzip
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from course_utils.fashion_mnist import idx, load

PAGE = 4096


def read_gz(folder: Path) -> list[np.ndarray]:
    return [
        idx.parse(gzip.decompress((folder / f"{spec.name}.gz").read_bytes()), spec)
        for spec in idx.FILES
    ]


def read_cached() -> list[np.ndarray]:
    data = load(allow_sample=False)
    return [data.train_images, data.train_labels, data.test_images, data.test_labels]


def torch_reader(folder: Path) -> Callable[[], list[np.ndarray]] | None:
    try:
        from torchvision.datasets.mnist import read_image_file, read_label_file
    except ImportError:
        return None

    def read_torch() -> list[np.ndarray]:
        readers = (read_image_file, read_label_file) * 2
        paths = (str(folder / spec.name) for spec in idx.FILES)
        return [read(path).numpy() for read, path in zip(readers, paths, strict=True)]

    return read_torch


def as_returned(arrays: list[np.ndarray]) -> None:
    pass


def pages_touched(arrays: list[np.ndarray]) -> None:
    for array in arrays:
        array.ravel()[::PAGE].max()


def bytes_read(arrays: list[np.ndarray]) -> None:
    for array in arrays:
        np.bitwise_xor.reduce(array.ravel().view(np.uint64))


def pixels_summed(arrays: list[np.ndarray]) -> None:
    for array in arrays:
        array.sum(dtype=np.int64)


def milliseconds(read: Callable, use: Callable) -> float:
    begin = time.perf_counter()
    use(read())
    return 1000 * (time.perf_counter() - begin)


def measure(readers: dict[str, Callable], use: Callable, repeats: int) -> dict[str, list[float]]:
    """Interleave the readers, so that a busy moment of the machine meets them all."""
    times = {name: [] for name in readers}
    for repeat in range(repeats + 1):
        for name, read in readers.items():
            elapsed = milliseconds(read, use)
            if repeat:  # the first round warms the page cache and the imports
                times[name].append(elapsed)
    return times


def print_table(title: str, times: dict[str, list[float]]) -> None:
    base = statistics.median(times["cached"])
    print(f"\n{title}\n{'':8}{'median ms':>12}{'min - max ms':>20}{'times cached':>15}")
    for name, values in times.items():
        spread = f"{min(values):.2f} - {max(values):.2f}"
        median = statistics.median(values)
        print(f"{name:8}{median:12.2f}{spread:>20}{median / base:15.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=15)
    repeats = parser.parse_args().repeats
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["XDG_CACHE_HOME"] = scratch
        os.environ.pop("FASHION_MNIST_DIR", None)
        print("source:", load(allow_sample=False).source)
        cache = Path(scratch) / "jax-course" / "fashion-mnist"
        packed = Path(scratch) / "packed"
        packed.mkdir()
        for spec in idx.FILES:
            content = (cache / spec.name).read_bytes()
            (packed / f"{spec.name}.gz").write_bytes(gzip.compress(content, 9))
        readers = {"cached": read_cached, "gz": lambda: read_gz(packed)}
        if read_torch := torch_reader(cache):
            readers["torch"] = read_torch
        else:
            print("torchvision is not installed here: its row is left out (see this file's head)")
        for use in (as_returned, pages_touched, bytes_read, pixels_summed):
            print_table(use.__name__.replace("_", " "), measure(readers, use, repeats))


if __name__ == "__main__":
    main()
