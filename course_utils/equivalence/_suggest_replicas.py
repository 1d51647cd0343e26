"""What copies that should be equal tell by how they differ."""

from collections.abc import Iterator

import numpy as np

from course_utils.equivalence._change import Change, norm, wide
from course_utils.equivalence._evidence import Evidence
from course_utils.equivalence._placed import Copy, replicas_that_differ
from course_utils.equivalence._replay import Replay
from course_utils.equivalence._report import Leaf
from course_utils.equivalence._weights import weights

_VERBS = {"mean": "pmean", "sum": "psum", "maximum": "pmax", "minimum": "pmin"}

_REDUCED_LOSS = " With check_vma=False, a reduced loss doesn't reduce its gradient."


def replicas(replay: Replay) -> str:
    """The cause, where replicas differ: a stale one, a missing reduction, or one unknown."""
    evidence = replay.evidence
    found = evidence.failing("replicas")
    if not found:
        return ""
    said = [_stale(*pair) for pair in found] + [_unreduced(replay, change) for _, change in found]
    return next(filter(None, said), "") or (
        f"the copies of {found[0][0].path} differ between devices, though it is declared the same "
        f"on all{_along(evidence, found[0][1])}. Likely a missing reduction (pmean), or something "
        "that differs by device, such as a random key. With check_vma=False nothing checks "
        "out_specs=P()."
    )


def _stale(leaf: Leaf, change: Change) -> str:
    odd, _ = replicas_that_differ(change.new)
    if change.metric or not norm(change.ref_update):
        return ""
    old = [c.device for c in odd if np.array_equal(c.value, change.old.at(c), equal_nan=True)]
    if not old or len(old) == len(change.new.copies):
        return ""
    return (
        f"{', '.join(old)} still holds its old value of {leaf.path} while others have moved on: "
        "a stale replica. Some devices skip the update, or the state is put together from copies "
        "of different steps."
    )


def _unreduced(replay: Replay, change: Change) -> str:
    """Whether the mean, or the sum, of what the devices hold would be right."""
    copies = change.new.copies
    numbers = change.new.inexact or change.new.value.dtype.kind in "iu"
    if len({copy.index for copy in copies}) != 1 or not numbers:
        return ""
    held = _held(replay, change, copies)
    for how, total in _reductions(change, copies):
        rounding = change.rounding if change.new.inexact else 0.0
        if norm(total - change.ref_update) <= 0.02 * norm(change.ref_update) + rounding:
            return (
                f"{change.path} lacks a reduction{_along(replay.evidence, change)}: {held}, and the "
                f"{how} over the devices is what one device gets. Reduce it with {_VERBS[how]} "
                f"before it is used.{'' if change.metric else _REDUCED_LOSS}"
            )
    if "shard" not in held:
        return ""
    return (
        f"{change.path} lacks a reduction{_along(replay.evidence, change)}: {held}. Reduce the "
        f"gradients (pmean) before they are used.{_REDUCED_LOSS}"
    )


def _reductions(change: Change, copies: tuple[Copy, ...]) -> Iterator[tuple[str, np.ndarray]]:
    old = 0.0 if change.metric else wide(change.old.value)
    updates = [wide(copy.value) - old for copy in copies]
    yield "mean", np.mean(updates, axis=0)
    yield "sum", np.sum(updates, axis=0)
    if change.metric:
        yield "maximum", np.max(updates, axis=0)
        yield "minimum", np.min(updates, axis=0)


def _held(replay: Replay, change: Change, copies: tuple[Copy, ...]) -> str:
    """What each copy is made of, as the reference tells when it is asked about the shards."""
    unknown = "each device holds what it got by itself"
    if change.metric or len(replay.on_parts) != len(copies):
        return unknown
    if times := _own(replay, change, copies):
        more = "" if abs(times - 1) < 0.02 else f", {times:.3g} times"
        return f"each device holds what its own shard of the batch gave{more}"
    made = [weights({change.path: wide(c.value)}, replay.on_parts, [change]) for c in copies]
    if any(found is None for found in made):
        return unknown
    said = [
        f"{copy.device} of {', '.join(map(str, np.flatnonzero(np.abs(found) > 0.03)))}"
        for copy, found in zip(copies, made, strict=True)
    ]
    return f"not every device counts every shard ({'; '.join(said)})"


def _own(replay: Replay, change: Change, copies: tuple[Copy, ...]) -> float:
    """How many times its own shard's update each device holds; 0 where it holds something else."""
    old = wide(change.old.value)
    times = []
    for copy, answer in zip(copies, replay.on_parts, strict=True):
        mine, alone = (np.ravel(wide(x) - old) for x in (copy.value, answer[change.path]))
        if not (norm(alone) or norm(mine)):
            continue  # a shard without a real example
        factor = np.vdot(alone, mine).real / max(norm(alone) ** 2, 1e-300)
        if norm(mine - factor * alone) > 0.02 * norm(mine) + change.rounding:
            return 0.0
        times.append(factor)
    if not times:
        return 0.0
    return float(np.mean(times)) if np.ptp(times) <= 0.02 * np.max(np.abs(times)) else 0.0


def _along(evidence: Evidence, change: Change) -> str:
    """The axes of the mesh along which the copies differ."""
    copies = [copy for copy in change.new.copies if copy.device in evidence.places]
    names = [name for name, size in evidence.sizes.axes.items() if size > 1]
    if len(copies) != len(change.new.copies):
        return ""
    differ = [name for name in names if _differ_along(name, names, copies, evidence)]
    return f" over mesh axis {' and '.join(map(repr, differ))}" if differ else ""


def _differ_along(name: str, names: list[str], copies: list[Copy], evidence: Evidence) -> bool:
    """Whether copies differ on devices that differ in nothing but their place along one axis."""
    groups: dict[tuple[int, ...], set[bytes]] = {}
    for copy in copies:
        at = evidence.places[copy.device]
        rest = tuple(at[other] for other in names if other != name)
        groups.setdefault(rest, set()).add(copy.value.tobytes())
    return any(len(values) > 1 for values in groups.values())
