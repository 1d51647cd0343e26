"""The tolerance of each leaf; the precision of the computation is looked up once it matters."""

from collections.abc import Callable, Sequence

import jax

from course_utils.equivalence._change import Change
from course_utils.equivalence._factors import is_moment, is_second_moment
from course_utils.equivalence._report import Leaf
from course_utils.equivalence._tolerance import (
    ADAM_LATER,
    ADAM_PARAMETERS,
    METRICS_LATER,
    matmul_precision,
    tolerance,
)
from course_utils.equivalence._verdict import Name, judge


class Judging:
    """Judge leaves by `rtol`, or by the narrowest of their dtype and what they are computed in."""

    def __init__(self, rtol: float | None, device: jax.Device, precision: Callable[[], str]):
        self._rtol, self._device, self._precision = rtol, device, precision
        self._narrowest = ""
        self._adam = False

    def rtol(self, change: Change) -> float:
        """The tolerated error of a leaf."""
        if self._rtol is not None:
            return self._rtol
        own = max(tolerance(change.ref_new.dtype), self._adams(change), _later(change))
        if change.ref_new.dtype == "float64":
            return own
        return max(own, tolerance(matmul_precision(self._device)), tolerance(self._narrowest))

    def judge(self, changes: Sequence[Change], examples: int, name: Name) -> list[Leaf]:
        """A row for each change."""
        self._adam = any(is_second_moment(change.path) for change in changes)
        leaves = [judge(change, self.rtol(change), examples, name) for change in changes]
        failed = any(leaf.kind == "error" for leaf in leaves)
        if failed and self._rtol is None and not self._narrowest:
            # Tracing a step runs its Python once more, so only where a failure depends on it.
            self._narrowest = self._precision()
            return self.judge(changes, examples, name)
        return leaves

    def _adams(self, change: Change) -> float:
        """What dividing by a second moment adds."""
        if not self._adam or change.metric or change.ref_new.dtype == "float64":
            return 0.0
        if is_moment(change.path):
            return ADAM_LATER if change.step > 1 else 0.0
        return ADAM_PARAMETERS


def _later(change: Change) -> float:
    """What parameters that have moved apart by their rounding add to a metric."""
    later = change.metric and change.step > 1 and change.ref_new.dtype != "float64"
    return METRICS_LATER if later else 0.0
