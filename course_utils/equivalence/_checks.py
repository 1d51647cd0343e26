"""What must hold before leaves can be compared: each returns the rows that break it, and why."""

from collections.abc import Sequence
from typing import Any

from course_utils.equivalence._batches import compare_batches, missing_or_extra
from course_utils.equivalence._placed import Placed, replicas_that_differ
from course_utils.equivalence._report import Leaf

Broken = tuple[list[Leaf], str]


def replicas_before(values: dict[str, Placed]) -> Broken:
    """Replicas of the first state that differ."""
    leaves = []
    for path, value in values.items():
        odd, seen = replicas_that_differ(value)
        if odd:
            names = ", ".join(copy.device for copy in odd)
            verdict = f"replicas differ before the first step: {names} of {seen} copies"
            leaves.append(Leaf(path, None, None, verdict, kind="replicas"))
    return leaves, (
        f"the copies of {leaves[0].path if leaves else ''} differ before the first step: devices "
        "were given other values (another seed each?), or an earlier step has let them drift."
    )


def batches_given(batches: Sequence[Any], wanted: Sequence[Any], shards: int) -> Broken:
    """Leaves of the first batch that isn't what it should be; both as the reference takes them."""
    for batch, reference in zip(batches, wanted, strict=True):
        if leaves := compare_batches(batch, reference, shards):
            return leaves, (
                f"{leaves[0].path} on the devices isn't the reference's: {leaves[0].verdict}. No "
                "step was run. Look at how the global batch is put together: offsets of shards, "
                "shuffles that differ between processes or between leaves."
            )
    return [], ""


def structure(found: dict[str, Placed], wanted: dict[str, Placed]) -> Broken:
    """Leaves that only one of the two sides returns."""
    leaves = missing_or_extra(found, wanted)
    said = "the parallel step returns another structure than the reference; " + _list(leaves)
    if leaves and all(leaf.path.startswith("metrics") for leaf in leaves):
        said += ". Return the same metrics on both sides, or compare the state alone: "
        said += "check_metrics=False."
    return leaves, said


def check_state_is_kept(before: dict[str, Placed], after: dict[str, Placed]) -> None:
    """Raise ValueError if the reference returns a state that it couldn't take again."""
    lost = missing_or_extra(after, before)
    lost += [
        Leaf(path, None, None, f"shape {value.value.shape}, before {before[path].value.shape}")
        for path, value in after.items()
        if path in before and before[path].value.shape != value.value.shape
    ]
    if lost:
        raise ValueError(
            "The reference step returns another state than it takes, so it can't be taken again: "
            + _list(lost)
        )


def _list(leaves: list[Leaf]) -> str:
    return "; ".join(f"{leaf.path}: {leaf.verdict}" for leaf in leaves[:5])
