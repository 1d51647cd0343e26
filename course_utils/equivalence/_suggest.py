"""Turn the leaves that differ into the likeliest cause, the surest evidence first."""

import numpy as np

from course_utils.equivalence._evidence import Evidence
from course_utils.equivalence._suggest_factor import decay, factor
from course_utils.equivalence._suggest_replicas import replicas


def suggest(evidence: Evidence) -> str:
    """The cause that the leaves themselves tell, "" where they tell none."""
    ask = (_other_dtype, _other_shape, replicas, _nan, _exact, _still, factor, decay)
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
