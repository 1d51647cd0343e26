"""Is the update made of what the shards of the batch give, each alone, and of which?"""

import re

import numpy as np

from course_utils.equivalence._change import norm, wide
from course_utils.equivalence._factors import is_moment, is_second_moment
from course_utils.equivalence._replay import Replay
from course_utils.equivalence._replay_weights import unequal
from course_utils.equivalence._shards import uneven

_STATISTICS = re.compile(r"mean|var\b|variance|stats|running|moving", re.IGNORECASE)


def per_shard(replay: Replay) -> str:
    """Shards that count another number of times than they should, or on their own."""
    if replay.explains(replay.on_parts, replay.linear):
        return _mean_of_shards(replay)
    said = unequal(replay, replay.on_parts, replay.counts, "shard")
    return said or unequal(replay, replay.on_micro, [1] * len(replay.on_micro), "micro-batch")


def _mean_of_shards(replay: Replay) -> str:
    found = (
        "the parallel update is the mean of what one device does with each shard alone, and that "
        "isn't what it does with all examples. "
    )
    if said := uneven(replay.counts):
        return f"{found}A mean of means over ragged shards: {said}"
    if _optimizer_first(replay):
        return (
            f"{found}Each device takes the optimizer's step for its own shard, and the results are "
            "averaged: reduce the gradient before the optimizer squares it."
        )
    statistics = [c.path for c in replay.changes if _STATISTICS.search(c.path)]
    if statistics:
        return (
            f"{found}{statistics[0]} tells of batch statistics that are taken per shard: reduce "
            "them over the devices (axis_name= in Flax's and Equinox's BatchNorm) before they "
            "normalise anything."
        )
    return found + (_clipped(replay) or (_SAME_KEY if replay.random else _NOT_LINEAR))


_SAME_KEY = (
    "Likely the same random key on every device, so that all shards draw the same numbers, or keys "
    "by an example's place in its shard: make them by its place in the global batch (example_keys)."
)
_NOT_LINEAR = (
    "Something that isn't linear in the gradient, or that looks at the whole batch, is done per "
    "shard: gradients clipped (or normalised) before they are reduced, batch statistics."
)


def _optimizer_first(replay: Replay) -> bool:
    """Second moments that differ where the first agree."""
    failing = [c.path for c in replay.changes if is_moment(c.path)]
    return bool(failing) and all(is_second_moment(path) for path in failing)


def _clipped(replay: Replay) -> str:
    """Updates of different shards that have one length, or one largest entry, in common."""
    updates = [
        np.concatenate([(wide(answer[c.path]) - wide(c.old.value)).ravel() for c in replay.linear])
        for answer in replay.on_parts
    ]
    if not updates or (replay.linear[0].step > 1 and any(is_moment(c.path) for c in replay.linear)):
        return ""  # the old moment is a part of its update
    for how, sizes in (
        ("to a norm", [norm(update) for update in updates]),
        ("entry by entry", [np.abs(update).max() for update in updates]),
    ):
        if np.ptp(sizes) <= 2e-3 * max(sizes):
            return (
                f"Alone, their updates have one size: gradients are clipped (or normalised) {how} "
                "before they are reduced. Reduce first, then clip."
            )
    return ""
