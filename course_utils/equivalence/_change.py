"""One leaf's update on both sides, and what factor lies between them."""

import math
from dataclasses import dataclass
from functools import cached_property

import jax.numpy as jnp
import numpy as np

from course_utils.equivalence._placed import Placed


@dataclass(frozen=True)
class Change:
    """One leaf before and after a step, on the parallel side and on the reference's.

    A metric has no before: it counts as having been zero. `walked` is the length of the way that
    the reference's leaf has gone in all steps so far, this one included.
    """

    path: str
    step: int
    new: Placed
    ref_new: Placed
    old: Placed | None = None
    ref_old: Placed | None = None
    walked: float = 0.0
    broken_since: int = 0

    @property
    def metric(self) -> bool:
        return self.old is None

    @cached_property
    def update(self) -> np.ndarray:
        return _minus(self.new, self.old)

    @cached_property
    def ref_update(self) -> np.ndarray:
        return _minus(self.ref_new, self.ref_old)

    @cached_property
    def scale(self) -> float:
        """What an error is a fraction of: the way that the leaf has walked; a metric's value."""
        return norm(self.ref_new.value) if self.metric else self.walked

    @cached_property
    def error(self) -> float:
        """Norm of what the two sides differ by after the step."""
        return norm(_minus(self.new, self.ref_new))

    @property
    def rounding(self) -> float:
        """What storing the leaf step after step may add to the error.

        Each side rounds each entry by at most half a spacing, every step; such errors are
        independent, so their norm grows with the root of the steps. A scalar metric, such as a
        loss near zero, is a small difference of numbers near one.
        """
        eps = float(jnp.finfo(self.ref_new.value.dtype).eps)
        if self.metric:
            return max(1e-6, eps) if self.ref_new.value.size == 1 else 0.0
        size = max(norm(wide(self.ref_new.value)), norm(wide(self.ref_old.value)))
        return eps * math.sqrt(self.step) * size


@dataclass(frozen=True)
class Fit:
    """update = factor * reference's update + decay * old value + a rest, as a fraction of update."""

    factor: float
    decay: float
    rest: float

    @property
    def tells(self) -> bool:
        """Whether factor or decay, and not the rest, is most of what the two updates differ by."""
        return bool(self.decay) or abs(self.factor - 1) > self.rest


def fit(change: Change) -> Fit | None:
    """Project the update onto the reference's, then onto the old value too if a rest remains."""
    update, onto = change.update.ravel(), change.ref_update.ravel()
    old = np.zeros_like(onto) if change.metric else wide(change.old.value).ravel()
    finite = np.isfinite(update) & np.isfinite(onto) & np.isfinite(old)
    update, onto, old = update[finite], onto[finite], old[finite]
    if not (norm(update) and norm(onto)):
        return Fit(0.0, 0.0, 0.0) if norm(onto) else None
    factor = float(np.vdot(onto, update).real / np.vdot(onto, onto).real)
    rest = norm(update - factor * onto) / norm(update)
    if rest < 1e-4 or update.size < 4 or not norm(old):
        return Fit(factor, 0.0, rest)
    # Columns of length one: the old value is usually far longer than an update.
    basis = np.stack([onto / norm(onto), old / norm(old)], axis=1)
    (a, b), *_ = np.linalg.lstsq(basis, update, rcond=None)
    smaller = norm(update - basis @ np.array([a, b])) / norm(update)
    if smaller > rest / 3:
        return Fit(factor, 0.0, rest)
    return Fit(float(np.real(a)) / norm(onto), float(np.real(b)) / norm(old), smaller)


def is_clean(change: Change, found: Fit, rtol: float) -> bool:
    """Whether nothing but tolerance and rounding is left once the factor is taken out."""
    rounding = change.rounding / max(norm(change.update), 1e-300)
    return found.rest <= min(max(1e-3, 20 * rtol, 3 * rounding), 0.1)


def norm(values: np.ndarray) -> float:
    return float(np.linalg.norm(wide(values).ravel()))


def wide(values: np.ndarray) -> np.ndarray:
    """The values in double precision, in which the comparison itself adds no error."""
    kind = np.complex128 if np.iscomplexobj(values) else np.float64
    return np.asarray(values).astype(kind)


def _minus(left: Placed, right: Placed | None) -> np.ndarray:
    return wide(left.value) - (0 if right is None else wide(right.value))
