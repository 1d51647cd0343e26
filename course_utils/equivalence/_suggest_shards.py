"""What the shards of a leaf tell: those that weren't updated, and those that were exchanged."""

import numpy as np

from course_utils.equivalence._evidence import Evidence


def still(evidence: Evidence) -> str:
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
        if held and len(held) == len(change.new.copies):
            return (
                f"{leaf.path} isn't updated on any device, where the reference moves it: the step "
                "returns its old value, such as an optimizer state that is never replaced."
            )
        if held:
            return f"{leaf.path} isn't updated on {', '.join(held)}, where the reference moves it."
    return ""


def exchanged(evidence: Evidence) -> str:
    """Shards of a leaf that get each other's updates."""
    for leaf, change in evidence.failing("error"):
        copies = [] if change.metric else change.new.copies
        if len(copies) < 2 or len({copy.index for copy in copies}) < len(copies):
            continue
        mine = [copy.value.astype(float) - change.old.at(copy) for copy in copies]
        theirs = [change.ref_new.at(c).astype(float) - change.ref_old.at(c) for c in copies]
        order = [_nearest(update, theirs) for update in mine]
        if sorted(order) == list(range(len(copies))) and order != sorted(order):
            return (
                f"the shards of {leaf.path} get each other's updates: those of "
                f"{', '.join(map(str, order))}, in the order of the devices. Look at the order in "
                "which pieces are gathered, scattered or permuted."
            )
    return ""


def _nearest(update: np.ndarray, others: list[np.ndarray]) -> int | None:
    for i, other in enumerate(others):
        same_shape = other.shape == update.shape and np.any(other)
        if same_shape and np.allclose(update, other, rtol=1e-3, atol=1e-3 * np.abs(other).max()):
            return i
    return None
