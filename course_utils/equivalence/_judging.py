"""The tolerance of each leaf, and what rounding excuses; both are looked up once they matter."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import jax
import numpy as np

from course_utils.equivalence._change import Change, wide
from course_utils.equivalence._factors import is_moment, is_second_moment
from course_utils.equivalence._placed import Placed
from course_utils.equivalence._report import Leaf
from course_utils.equivalence._tolerance import (
    ADAM_LATER,
    ADAM_PARAMETERS,
    METRICS_LATER,
    matmul_precision,
    spacing,
    tolerance,
)
from course_utils.equivalence._verdict import Name, judge

# The two sides go astray by rounding as far as the reference's other runs do, give or take the
# luck of a small leaf: up to twice as far was seen on the 8 biases before a batch normalisation and
# their moments (3 networks, 2 to 8 devices, 8 steps).
_ASTRAY = 5

NoiseAt = Callable[[int, float, Mapping[str, Placed]], dict[str, float]]


class Judging:
    """Judge leaves by `rtol`, or by the narrowest of their dtype and what they are computed in."""

    def __init__(
        self,
        rtol: float | None,
        device: jax.Device,
        precision: Callable[[], str],
        noise: NoiseAt,
    ):
        self._rtol, self._device, self._precision = rtol, device, precision
        self._noise = noise
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
        """A row for each change; `examples` are those of a batch."""
        self._adam = any(is_second_moment(change.path) for change in changes)
        leaves = [judge(change, self.rtol(change), name) for change in changes]
        if not any(leaf.kind in ("error", "exact") for leaf in leaves):
            return leaves
        if self._rtol is None and not self._narrowest:
            # Tracing a step runs its Python once more, so only where a failure depends on it.
            self._narrowest = self._precision()
            return self.judge(changes, examples, name)
        return self._excused(leaves, changes, examples)

    def _excused(
        self, leaves: Sequence[Leaf], changes: Sequence[Change], examples: int
    ) -> list[Leaf]:
        """Leaves that differ by no more than the reference does from itself, rounded otherwise."""
        failed = [c for c, leaf in zip(changes, leaves, strict=True) if leaf.kind]
        wanted = {change.path: change.ref_new for change in failed}
        narrowest = self._narrowest or "float32"
        if narrowest == "float32":
            narrowest = matmul_precision(self._device)
        noise = self._noise(changes[0].step, spacing(narrowest), wanted)
        return [
            self._excuse(leaf, change, noise.get(leaf.path, 0.0), examples)
            for leaf, change in zip(leaves, changes, strict=True)
        ]

    def _excuse(self, leaf: Leaf, change: Change, noise: float, examples: int) -> Leaf:
        if not noise:
            return leaf
        if change.metric and flips(change, examples, self.rtol(change)):
            said = "equal but for examples on a decision's edge"
            return replace(leaf, verdict=said, status="equal", kind="")
        excused = noise > self.rtol(change) * change.scale and change.error <= _ASTRAY * noise
        if leaf.kind != "error" or self._rtol is not None or not excused:
            return leaf
        if change.error > 0.1 * change.scale:
            said = "unproved: its update is nothing but rounding"
            return replace(leaf, verdict=said, status="unproved", kind="")
        said = "equal within the rounding that its update magnifies"
        return replace(leaf, verdict=said, status="equal", kind="")

    def _adams(self, change: Change) -> float:
        """What dividing by a second moment adds."""
        if not self._adam or change.metric or change.ref_new.dtype == "float64":
            return 0.0
        if is_moment(change.path):
            return ADAM_LATER if change.step > 1 else 0.0
        return ADAM_PARAMETERS


def flips(change: Change, examples: int, rtol: float) -> bool:
    """Whether a count, a share or a table of counts differs by few enough examples.

    An example with two equal logits may count as one class or the other.
    """
    sides = (change.new, change.ref_new)
    if not examples or not all(side.inexact or side.value.dtype.kind in "iu" for side in sides):
        return False
    new, reference = (wide(side.value) for side in sides)
    if np.iscomplexobj(new) or new.shape != reference.shape or new.size == 0:
        return False
    if new.size == 1 and change.new.inexact and max(new.max(), reference.max()) <= 1:
        new, reference = new * examples, reference * examples
    whole = all(np.allclose(side, np.round(side), rtol=0, atol=1e-3) for side in (new, reference))
    moved = np.abs(new - reference).sum()
    if new.size > 1:  # an example leaves one entry for another
        whole = whole and math.isclose(new.sum(), reference.sum(), rel_tol=1e-6)
        moved /= 2
    few = moved <= max(1, rtol * examples) + 0.01 and moved < examples / 4
    return bool(whole and few)


def _later(change: Change) -> float:
    """What parameters that have moved apart by their rounding add to a metric."""
    later = change.metric and change.step > 1 and change.ref_new.dtype != "float64"
    return METRICS_LATER if later else 0.0
