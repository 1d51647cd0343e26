"""Judge one leaf: the verdict in words, and whether it is one that counts."""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from course_utils.equivalence._change import Change, fit, is_clean, norm, wide
from course_utils.equivalence._placed import Placed, replicas_that_differ
from course_utils.equivalence._report import Leaf

Name = Callable[[float, str], str]


def judge(change: Change, rtol: float, name: Name) -> Leaf:
    """Say whether a leaf agrees, to `rtol` of the way the reference's leaf has walked.

    `name` turns a factor into words, "" where it has none.
    """
    structural = _structural(change)
    if structural:
        return structural
    if not (change.new.inexact and change.ref_new.inexact):
        return _exact(change)
    finite = np.isfinite(change.new.value) & np.isfinite(change.ref_new.value)
    if not np.all(finite):
        return _with_holes(change, finite, rtol, name)
    return _close(change, rtol, name)


def _structural(change: Change) -> Leaf | None:
    new, reference, path = change.new, change.ref_new, change.path
    if new.value.shape != reference.value.shape:
        said = f"shape {new.value.shape}, the reference's is {reference.value.shape}"
        return Leaf(path, None, None, said, kind="shape")
    if new.dtype and reference.dtype and new.dtype != reference.dtype:
        said = f"{new.dtype}, the reference's is {reference.dtype}"
        return Leaf(path, None, None, said, kind="dtype")
    odd, seen = replicas_that_differ(new)
    if odd:
        apart = max(_distance(copy.value, new.at(copy)) for copy in [*odd, *new.copies])
        names = ", ".join(copy.device for copy in odd)
        said = f"replicas differ by up to {apart:.3g}: {names} of {seen} copies"
        return Leaf(path, _relative(change), _factor(change), said, kind="replicas")
    return None


def _exact(change: Change) -> Leaf:
    same = change.new.value == change.ref_new.value
    if np.all(same):
        moved = change.metric or np.any(change.ref_new.value != change.ref_old.value)
        return Leaf(change.path, 0.0, None, "equal" if moved else "equal: doesn't move", "equal")
    kind = change.new.dtype or type(change.new.value.item(0)).__name__
    said = f"{np.size(same) - np.count_nonzero(same)} of {np.size(same)} {kind} entries differ"
    return Leaf(change.path, None, None, said, kind="exact")


def _with_holes(change: Change, finite: np.ndarray, rtol: float, name: Name) -> Leaf:
    """NaN and infinities: the same ones in the same places agree, others are named."""
    new, reference = change.new.value, change.ref_new.value
    same = (new == reference) | (np.isnan(new) & np.isnan(reference))
    what = "NaN" if np.any(np.isnan(new) | np.isnan(reference)) else "inf"
    since = f"since step {change.broken_since}"
    if not np.all(same | finite):
        sides = (np.isfinite(new).all(), np.isfinite(reference).all())
        side = {(False, True): "in the parallel step only", (True, False): "in the reference only"}
        said = f"{what} {side.get(sides, 'in other places than the reference')}, {since}"
        return Leaf(change.path, None, None, said, kind="non-finite")
    if not np.any(finite):
        return Leaf(change.path, None, None, f"unproved: {what} on both sides {since}", "unproved")
    parts = {side: _only(getattr(change, side), finite) for side in ("new", "ref_new")}
    if not change.metric:
        alive = np.isfinite(change.old.value[finite]) & np.isfinite(change.ref_old.value[finite])
        parts = {side: _only(part, alive) for side, part in parts.items()}
        finite_old = {s: _only(getattr(change, s), finite) for s in ("old", "ref_old")}
        parts |= {side: _only(part, alive) for side, part in finite_old.items()}
    leaf = _close(replace(change, **parts), rtol, name)
    said = f"{leaf.verdict}; {what} on both sides in {np.count_nonzero(~finite)} entries {since}"
    return replace(leaf, verdict=said)


def _close(change: Change, rtol: float, name: Name) -> Leaf:
    leaf = Leaf(change.path, _relative(change), _factor(change), "equal", "equal")
    scale = change.scale
    if change.error <= rtol * scale:
        return leaf if scale or change.metric else replace(leaf, **_UNMOVED)
    if change.error <= rtol * scale + change.rounding:
        if change.rounding < 0.25 * scale:
            return replace(leaf, verdict=f"equal within {change.ref_new.dtype or 'its'} rounding")
        if not norm(change.ref_update):
            return replace(leaf, **_UNMOVED)
        said = "unproved: its change is no larger than its rounding"
        return replace(leaf, verdict=said, status="unproved")
    return replace(leaf, verdict=_by_factor(change, rtol, name), status="differs", kind="error")


_UNMOVED = {"verdict": "unproved: doesn't move on either side", "status": "unproved"}


def _by_factor(change: Change, rtol: float, name: Name) -> str:
    found = fit(change)
    if found is None:
        return "moves, the reference's doesn't"
    if not found.factor and not norm(change.update):
        return "doesn't move, the reference's does"
    if not (is_clean(change, found, rtol) and found.tells):
        what = "it" if change.metric else "its update"
        return f"differs; {found.rest:.2g} of {what} is in another direction than the reference's"
    meaning = name(found.factor, change.path)
    exactly = "exactly " if meaning or change.new.value.size > 1 else ""
    times = f"is {exactly}{found.factor:.4g} times the reference's"
    if not change.metric:
        times = f"moves {exactly}{found.factor:.4g} times as far as the reference's"
    decay = f", plus {found.decay:.3g} times its old value" if found.decay else ""
    return times + decay + (f": {meaning}" if meaning else "")


def _relative(change: Change) -> float | None:
    if not (change.new.inexact and change.ref_new.inexact):
        return None
    scale = change.scale
    return change.error / scale if scale else (math.inf if change.error else 0.0)


def _factor(change: Change) -> float | None:
    found = fit(change) if change.new.inexact and change.ref_new.inexact else None
    return found and found.factor


def _distance(left: np.ndarray, right: np.ndarray) -> float:
    return float(np.max(np.abs(wide(left) - wide(right)), initial=0.0))


def _only(placed: Placed, where: np.ndarray) -> Placed:
    return replace(placed, value=placed.value[where], copies=())
