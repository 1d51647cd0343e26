"""How this package speaks: one plain line for a notable event, one error that has it all."""

import os
import sys

HOW_TO_GET_IT = """\
How to get the whole data set (31 MB), any one of these:
  - Debian, Ubuntu:   apt-get install dataset-fashion-mnist
  - with a network:   make data   (python -m course_utils.fashion_mnist)
  - files at hand:    FASHION_MNIST_DIR=/folder/with/the/four/files   (raw or .gz)
  - own web server:   FASHION_MNIST_MIRRORS="http://server/folder/"   (the four .gz files)"""


class Unavailable(Exception):
    """A source that cannot give a file; the message is the reason."""


class Absent(Unavailable):
    """A source that simply has nothing, which is no reason to speak."""


class DatasetUnavailable(RuntimeError):
    """No source could give the whole of Fashion-MNIST; the message lists each with its reason."""


def say(message: str) -> None:
    """Print one line to stderr, which a notebook shows below the cell."""
    print(f"Fashion-MNIST: {message}", file=sys.stderr, flush=True)


def reason(error: BaseException) -> str:
    """Return the short reason of an exception: for an OSError the system's own words."""
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def unavailable(tried: list[tuple[str, str]], sample_refused: bool) -> DatasetUnavailable:
    """Return the error that names each of `tried`, (source, reason) pairs, and the cure."""
    lines = ["Fashion-MNIST could not be loaded whole. Tried, in this order:"]
    lines += [f"  - {source}: {why}" for source, why in tried]
    if only := os.environ.get("FASHION_MNIST_SOURCES"):
        lines.append(f"  - nothing else: FASHION_MNIST_SOURCES={only} allows no more")
    if sample_refused:
        lines.append("The bundled sample of 6,000 + 1,000 images is refused by allow_sample=False.")
    return DatasetUnavailable("\n".join([*lines, HOW_TO_GET_IT]))


def say_sample(train: int, test: int) -> None:
    """Say loudly that the learner looks at a sample, and how to get the whole."""
    frame = "=" * 78
    block = (
        f"{frame}\nTHIS IS A SAMPLE of Fashion-MNIST: {train:,} training and {test:,} test images\n"
        "instead of 60,000 and 10,000. All cells run; accuracies come out lower than with\n"
        f"the whole, and figures that count images differ.\n{HOW_TO_GET_IT}\n{frame}"
    )
    print(block, file=sys.stderr, flush=True)
