"""Turn the leaves that differ into the likeliest cause, the surest evidence first."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from course_utils.equivalence._compare import Change, Fit, fit, is_clean, norm, wide
from course_utils.equivalence._factors import Named, is_first_moment, is_moment, name_factor
from course_utils.equivalence._placed import replicas_that_differ
from course_utils.equivalence._report import Leaf


@dataclass(frozen=True)
class Evidence:
    """All leaves of the first step with a difference, and what is known of the devices."""

    leaves: Sequence[Leaf]
    changes: Sequence[Change]
    axes: Mapping[str, int]
    devices: int
    rtol: float

    def failing(self, *kinds: str) -> list[tuple[Leaf, Change]]:
        """The state's leaves that differ; the metrics' where the state agrees."""
        pairs = zip(self.leaves, self.changes, strict=True)
        differ = [pair for pair in pairs if pair[0].status == "differs" and pair[0].kind in kinds]
        return [pair for pair in differ if not pair[1].metric] or differ

    def named(self, factor: float, path: str) -> Named | None:
        return name_factor(factor, path, self.axes, self.devices)


def suggest(evidence: Evidence) -> str:
    """The cause that the leaves themselves tell, "" where they tell none."""
    ask = (_other_dtype, _other_shape, _replicas, _nan, _exact, _still, _factor, _decay)
    return next((said for question in ask if (said := question(evidence))), "")


def _other_dtype(evidence: Evidence) -> str:
    if not (found := evidence.failing("dtype")):
        return ""
    leaf = found[0][0]
    return (
        f"{leaf.path} has the wrong dtype ({leaf.verdict}): a cast is missing, or one too many. "
        "Correct it first; other differences may follow from it."
    )


def _other_shape(evidence: Evidence) -> str:
    if not (found := evidence.failing("shape")):
        return ""
    return (
        f"{found[0][0].path} has another {found[0][0].verdict}. A per-device value may be "
        "returned instead of a reduced one, or out_specs may name an axis too many or too few."
    )


def _replicas(evidence: Evidence) -> str:
    found = evidence.failing("replicas")
    asked = [ask(*pair) for ask in (_stale, _unreduced) for pair in found]
    if said := next((said for said in asked if said), ""):
        return said
    if not found:
        return ""
    return (
        f"the copies of {found[0][0].path} differ between devices, though it is declared the same "
        "on all. Likely a missing reduction (pmean), or something that differs by device, such "
        "as a random key. With check_vma=False nothing checks out_specs=P()."
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


def _unreduced(leaf: Leaf, change: Change) -> str:
    """Whether the mean, or the sum, of what the devices hold would be right."""
    copies = change.new.copies
    if len({copy.index for copy in copies}) != 1 or not change.new.inexact:
        return ""
    old = 0.0 if change.metric else wide(change.old.value)
    updates = [wide(copy.value) - old for copy in copies]
    for how, total in (("mean", sum(updates) / len(updates)), ("sum", sum(updates))):
        if norm(total - change.ref_update) <= 0.02 * norm(change.ref_update) + change.rounding:
            return (
                f"{leaf.path} lacks a reduction: each device holds what its own shard of the batch "
                f"gave, and the {how} over the devices is what one device gets. Reduce it with "
                f"{'pmean' if how == 'mean' else 'psum'} before it is used."
            )
    return ""


def _nan(evidence: Evidence) -> str:
    if not (found := evidence.failing("non-finite")):
        return ""
    return (
        f"{found[0][0].path}: {found[0][0].verdict}. Look for a shard without a valid example "
        "(0/0), an overflow in a sum instead of a mean, or padding that isn't masked."
    )


def _exact(evidence: Evidence) -> str:
    if not (found := evidence.failing("exact")) or evidence.failing("error"):
        return ""
    return (
        f"{found[0][0].path}: {found[0][0].verdict}. Whole numbers, bools and random keys are "
        "compared exactly: a counter that is reduced too, or a key that is split another way."
    )


def _still(evidence: Evidence) -> str:
    """A shard, with no replica to contradict it, that wasn't updated."""
    for leaf, change in evidence.failing("error"):
        if change.metric:
            continue
        held = [
            copy.device
            for copy in change.new.copies
            if np.array_equal(copy.value, change.old.at(copy))
            and not np.array_equal(change.ref_new.at(copy), change.ref_old.at(copy))
        ]
        if held:
            return f"{leaf.path} isn't updated on {', '.join(held)}, where the reference moves it."
    return ""


def _factor(evidence: Evidence) -> str:
    """An exact factor with a meaning; where moments have one, it is theirs that counts."""
    found: dict[str, tuple[Fit, Named]] = {}
    for leaf, change in evidence.failing("error"):
        fitted = fit(change)
        named = fitted and evidence.named(fitted.factor, leaf.path)
        if named and is_clean(change, fitted, evidence.rtol):
            found[leaf.path] = fitted, named
    if not found:
        return ""
    first = next((path for path in found if is_first_moment(path)), next(iter(found)))
    if not is_moment(first):
        first = max(found, key=lambda path: _size(evidence, path))
    fitted, named = found[first]
    alike = sum(other.kind == named.kind for _, other in found.values())
    what = (
        f"{first} {_moves(evidence, first)} {fitted.factor:.4g} times the reference's: {named.text}"
    )
    more = f" (so are {alike - 1} more)" if alike > 1 else ""
    return f"{_hidden(evidence, first)}{what}{more}. {_meaning(evidence, first, named)}"


def _size(evidence: Evidence, path: str) -> int:
    return next(c.new.value.size for c in evidence.changes if c.path == path)


def _moves(evidence: Evidence, path: str) -> str:
    metric = next(change.metric for change in evidence.changes if change.path == path)
    return "is" if metric else "has an update that is"


def _meaning(evidence: Evidence, path: str, named: Named) -> str:
    if named.kind == "sign":
        return "The update goes uphill."
    if named.kind == "root":
        return "A scaling by the root of the device count, such as a learning rate scaled so."
    if _after_the_moments(evidence, path):
        return (
            "The optimizer's moments agree, so the gradient is right and what follows is scaled: "
            "a learning rate multiplied or divided by the number of devices."
        )
    if named.kind == "mean":
        return (
            "Averaged twice: a pmean (or psum) of something that was already divided by the global "
            "batch size or by the number of devices."
        )
    likewise = "" if is_moment(path) else " A learning rate multiplied by it looks the same."
    return (
        "Summed instead of averaged: a psum where pmean belongs; or a pmean that does nothing, "
        "because shard_map (check_vma=True) has already summed the gradient with respect to "
        f"replicated parameters.{likewise}"
    )


def _after_the_moments(evidence: Evidence, path: str) -> bool:
    moments = [leaf for leaf in evidence.leaves if is_moment(leaf.path)]
    agree = bool(moments) and all(leaf.status == "equal" for leaf in moments)
    return agree and path.startswith("state")


def _hidden(evidence: Evidence, path: str) -> str:
    """Say so where the parameters hardly show what the optimizer's moments do."""
    others = [
        leaf
        for leaf, change in zip(evidence.leaves, evidence.changes, strict=True)
        if not change.metric and leaf.factor is not None and not is_moment(leaf.path)
    ]
    if not is_moment(path) or not others or any(abs(leaf.factor - 1) > 0.1 for leaf in others):
        return ""
    error = max(leaf.relative_error for leaf in others)
    return (
        f"the parameters agree to {error:.1g}, but the optimizer's moments don't; an optimizer that "
        "divides by its second moment, such as Adam, hides a factor from the parameters. "
    )


def _decay(evidence: Evidence) -> str:
    for leaf, change in evidence.failing("error"):
        fitted = fit(change)
        clean = fitted and is_clean(change, fitted, evidence.rtol)
        if clean and fitted.decay and abs(fitted.factor - 1) < 0.02:
            return (
                f"{leaf.path} moves as the reference does, plus {fitted.decay:.3g} times its own "
                "value: weight decay (or an L2 penalty) counts another number of times, such as "
                "once per device."
            )
    return ""
