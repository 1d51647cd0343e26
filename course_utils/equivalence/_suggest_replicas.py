"""What copies that should be equal tell by how they differ."""

import numpy as np

from course_utils.equivalence._change import Change, norm, wide
from course_utils.equivalence._evidence import Evidence
from course_utils.equivalence._placed import replicas_that_differ
from course_utils.equivalence._report import Leaf


def replicas(evidence: Evidence) -> str:
    """The cause, where replicas differ: a stale one, a missing reduction, or one unknown."""
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
