"""How a metric is put together from what the shards give, and how it should be."""

from collections.abc import Iterator, Sequence

import numpy as np

from course_utils.equivalence._change import Change, norm, wide
from course_utils.equivalence._replay import Replay
from course_utils.equivalence._shards import uneven

_HOW = {"mean": "pmean", "sum": "psum", "maximum": "pmax", "minimum": "pmin"}


def metrics(replay: Replay) -> str:
    """The cause where only metrics differ, "" where the shards don't tell."""
    failing = [change for _, change in replay.evidence.failing("error", "exact")]
    if not failing or not all(change.metric for change in failing):
        return ""
    if said := _padding(replay, failing):
        return said
    for change in failing if replay.on_parts else ():
        shards = [wide(answer[change.path]) for answer in replay.on_parts]
        mine = _kind(wide(change.new.value), shards, replay)
        right = _kind(wide(change.ref_new.value), shards, replay)
        if mine and mine != right:
            return f"{change.path} is the {mine} of what the shards give, {_cure(right, replay)}"
    return ""


def _padding(replay: Replay, failing: Sequence[Change]) -> str:
    """A metric that counts padding, where the gradients don't."""
    answer = None if replay.padded is None else replay.ask(replay.padded)
    for change in failing:
        if replay.explains([answer], [change]):
            return (
                f"padding counts in {change.path} as examples do: it is what one device returns "
                "with the mask left out. Weigh each example with the mask, in sums and in counts."
            )
    return ""


def _cure(right: str, replay: Replay) -> str:
    if right in _HOW:
        return f"and one device's is their {right}: reduce it with {_HOW[right]}."
    if said := uneven(replay.counts):
        return f"a mean of means over ragged shards: {said}"
    return (
        "and one device's is no plain mean, sum, maximum or minimum of them: reduce what it is "
        "made of, such as a ratio's numerator and denominator (psum), then put it together."
    )


def _kind(value: np.ndarray, shards: list[np.ndarray], replay: Replay) -> str:
    """The first way of putting the shards' values together that gives `value`."""
    if any(shard.shape != value.shape or not np.isfinite(shard).all() for shard in shards):
        return ""
    for name, whole in _ways(shards, replay.counts):
        if norm(whole - value) <= 1e-4 * max(norm(value), 1e-30):
            return name
    return ""


def _ways(shards: list[np.ndarray], counts: Sequence[int]) -> Iterator[tuple[str, np.ndarray]]:
    yield "mean", np.mean(shards, axis=0)
    yield "sum", np.sum(shards, axis=0)
    yield "maximum", np.max(shards, axis=0)
    yield "minimum", np.min(shards, axis=0)
    yield "weighted mean", np.average(shards, axis=0, weights=counts)
    yield "mean over the devices of the sum", np.mean(shards, axis=0) / len(shards)
    for i, shard in enumerate(shards):
        yield f"part (shard {i})", shard
