"""A way to train as the variant of a group: compared once, then timed round by round."""

import contextlib
import importlib
import sys
import time
from collections.abc import Iterator

from benchmarks import problem
from benchmarks.problem import SGD_STEPS, Layers

TIME = "ms per step"


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
        """Time an epoch, after one that nobody times.

        Since this process' last turn the others had the cores and the caches. Who trains doesn't
        begin each epoch that way; the first one here takes a few per cent longer.
        """
        with _no_compiles():
            self._timed.epoch()
            start = time.perf_counter()
            self._timed.epoch()
            elapsed = time.perf_counter() - start
        return {TIME: 1000 * elapsed / len(self._problem.rows)}


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
