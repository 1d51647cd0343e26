"""A way to train as the variant of a group: compared once, then timed round by round."""

import contextlib
import importlib
import statistics
import sys
import time
from collections.abc import Iterator

from benchmarks import problem
from benchmarks.problem import SGD_STEPS, Layers

TIME = "ms per step"
EPOCHS = 3  # timed in a round


class Timed:
    """What runs in the process of one way to train."""

    def __init__(self, target: str, *arguments: str) -> None:
        module, _, name = target.partition(":")
        self._way = getattr(importlib.import_module(module), name)
        self._arguments = arguments
        self._problem = problem.load()
        self._timed = None

    def after_sgd(self) -> Layers:
        """The parameters after the first steps of plain gradient descent."""
        way = self._way(self._problem, "sgd", self._problem.rows[:SGD_STEPS], *self._arguments)
        way.epoch()
        return way.parameters()

    def prepare(self) -> None:
        """Compile, and run an epoch that nobody times."""
        self._timed = self._way(self._problem, "adamw", self._problem.rows, *self._arguments)
        self._timed.epoch()
        self._timed.epoch()  # what compiles at its second call has now done so

    def round(self) -> dict[str, float]:
        """Time some epochs, after one that nobody times, and return their median.

        Since this process' last turn the others had the cores and the caches. Who trains doesn't
        begin each epoch that way; the first one here takes a few per cent longer. And a machine that
        is shared stops for a moment now and then: one epoch of some may be hit.
        """
        with _no_compiles():
            self._timed.epoch()
            times = [self._seconds() for _ in range(EPOCHS)]
        return {TIME: 1000 * statistics.median(times) / len(self._problem.rows)}

    def _seconds(self) -> float:
        start = time.perf_counter()
        self._timed.epoch()
        return time.perf_counter() - start


@contextlib.contextmanager
def _no_compiles() -> Iterator[None]:
    """Refuse a time in which JAX compiled something, where JAX is what runs."""
    if "jax" not in sys.modules:
        yield
        return
    from course_utils.compiles import count_compiles

    with count_compiles() as compiles:
        yield
    if compiles.count:
        raise RuntimeError(f"{compiles.count} programs were compiled while the clock ran")
