"""What the leaves that differ tell by themselves."""

import numpy as np

from course_utils.equivalence._change import Change
from course_utils.equivalence._evidence import Evidence


def other_dtype(evidence: Evidence) -> str:
    """A leaf of another dtype."""
    if not (found := evidence.failing("dtype")):
        return ""
    leaf = found[0][0]
    return (
        f"{leaf.path} has the wrong dtype ({leaf.verdict}): a cast is missing, or one too many. "
        "Correct it first; other differences may follow from it."
    )


def other_shape(evidence: Evidence) -> str:
    """A leaf of another shape, such as one value per device where one for all should be."""
    if not (found := evidence.failing("shape")):
        return ""
    leaf, change = found[0]
    if how := _over_devices(change):
        return (
            f"{leaf.path} comes once per device, and the {how[0]} over the devices is what one "
            f"device returns: reduce it with {how[1]}."
        )
    return (
        f"{leaf.path} has another {leaf.verdict}. A per-device value may be "
        "returned instead of a reduced one, or out_specs may name an axis too many or too few."
    )


def nan(evidence: Evidence) -> str:
    """NaN or infinities on one side."""
    if not (found := evidence.failing("non-finite")):
        return ""
    return (
        f"{found[0][0].path}: {found[0][0].verdict}. Look for a shard without a valid example "
        "(0/0), an overflow in a sum instead of a mean, or padding that isn't masked."
    )


def exact(evidence: Evidence) -> str:
    """Counters and keys that differ, where nothing else does."""
    if not (found := evidence.failing("exact")) or evidence.failing("error"):
        return ""
    leaf, change = found[0]
    times = counted_times(change)
    if times == 0:
        return (
            f"{leaf.path} doesn't count, the reference's does: the step returns the old state "
            "(of the optimizer, say)."
        )
    if said := times and _once_per(times, evidence):
        return (
            f"{leaf.path} counts {times:g} where the reference counts 1: {said}. A schedule that "
            "reads it runs ahead."
        )
    if change.new.dtype.startswith("key") and np.array_equal(change.new.value, change.old.value):
        return (
            f"{leaf.path} is a random key that isn't advanced, where the reference's is: every step "
            "draws the same numbers."
        )
    return (
        f"{leaf.path}: {leaf.verdict}. Whole numbers, bools and random keys are "
        "compared exactly: a counter that is reduced too, or a key that is split another way."
    )


def _once_per(times: float, evidence: Evidence) -> str:
    sizes = evidence.sizes
    causes = []
    if times in sizes.of_devices():
        causes.append("it is added up over the devices, or counts once per device")
    if times == sizes.micro_batches > 1:
        causes.append("it counts once per micro-batch")
    return "; or ".join(causes)


def counted_times(change: Change) -> float | None:
    """How many times the reference's a whole number has moved; None where that says nothing."""
    if change.metric or change.new.inexact or change.new.value.size != 1 or not change.new.dtype:
        return None
    if not np.issubdtype(change.new.value.dtype, np.integer):
        return None
    mine = int(change.new.value.item(0)) - int(change.old.value.item(0))
    reference = int(change.ref_new.value.item(0)) - int(change.ref_old.value.item(0))
    return mine / reference if reference and mine >= 0 else None


def counter_times(evidence: Evidence) -> int:
    """How often the reference's step a counter of the state has counted, 1 where none tells."""
    times = [counted_times(change) for _, change in evidence.failing("exact")]
    return next((round(t) for t in times if t and t == round(t)), 1)


def _over_devices(change: Change) -> tuple[str, str] | None:
    new, reference = change.new.value.astype(float), change.ref_new.value.astype(float)
    if new.ndim != reference.ndim + 1 or new.shape[1:] != reference.shape:
        return None
    ways = {"mean": ("pmean", np.mean), "sum": ("psum", np.sum)}
    ways |= {"maximum": ("pmax", np.max), "minimum": ("pmin", np.min)}
    for name, (verb, function) in ways.items():
        if np.allclose(function(new, axis=0), reference, rtol=1e-4):
            return name, verb
    return None
