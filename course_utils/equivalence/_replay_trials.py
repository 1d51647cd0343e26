"""Faults that are tried one after another on the reference, the commoner first."""

import itertools
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np

from course_utils.equivalence._replay import Replay
from course_utils.equivalence._shards import rows_of, uneven

_MOST_REPLAYS = 60


def other_batch(replay: Replay) -> str:
    """The update that belongs to another batch than the one given."""
    for number, batch in enumerate(replay.batches):
        if batch is not replay.reference.batch and replay.explains([replay.ask(batch)]):
            return (
                f"the update is the one that batch {number} (of {len(replay.batches)}, from 0) "
                "gives: the step doesn't take the batch that it is called with. It may be closed "
                "over when the step is compiled, or come one step late."
            )
    return ""


def padding(replay: Replay) -> str:
    """Padding that counts as if it were examples."""
    if replay.padded is not None and replay.explains([replay.ask(replay.padded)]):
        return (
            "padding counts as examples do: the update is that of one device with the mask left "
            "out. Weigh each example's loss with the mask, and divide by its sum (weighted_mean)."
            + _or_means(replay)
        )
    return ""


def _or_means(replay: Replay) -> str:
    """Padding repeats an example: where a shard holds no other, that example's mean is the same."""
    counts = replay.counts
    if len(set(counts)) < 2 or any(count not in (1, max(counts)) for count in counts):
        return ""
    return f" Or it is a mean of means over ragged shards: {uneven(counts)}"


def several_steps(replay: Replay, times: int) -> str:
    """An optimizer that steps once for each micro-batch."""
    reference, state = replay.reference, replay.reference.before
    for what, batches in (
        ("once for each micro-batch", replay.micro),
        ("so often for each batch", [reference.batch] * times if times > 1 else []),
    ):
        for batch in batches[:-1]:
            state = reference.result(batch, state=state)[0]
        if batches and replay.explains([replay.ask(batches[-1], state=state)]):
            return (
                f"the optimizer steps {len(batches)} times where the reference's steps once, {what}: "
                "add up the gradients of all micro-batches, then update once."
            )
        state = reference.before
    return ""


def moved_shards(replay: Replay) -> str:
    """One leaf of the batch, such as the labels, in another order than the rest."""
    batch, shards = replay.reference.batch, len(replay.parts)
    count = rows_of(batch)
    leaves = jax.tree_util.tree_leaves_with_path(batch)
    split = [i for i, (_, leaf) in enumerate(leaves) if np.shape(leaf)[:1] == (count,)]
    split.sort(key=lambda i: np.size(leaves[i][1]))  # labels, say, before images
    if shards < 2 or count % shards or len(split) < 2:
        return ""
    blocks = np.arange(count).reshape(shards, -1)
    trials = itertools.product(split, _orders(shards))
    for i, order in itertools.islice(trials, _MOST_REPLAYS):
        if replay.explains([replay.ask(_rows(batch, blocks[order].ravel(), i))]):
            name = jax.tree_util.keystr(leaves[i][0])
            return (
                f"the shards of batch{name} and those of the rest meet the wrong part of the batch: "
                f"the update is that of one device if batch{name} comes in the order "
                f"{', '.join(map(str, order))}."
            )
    return ""


def _orders(shards: int) -> Iterator[list[int]]:
    """One for all; rolls by one to either side and further; then swaps of two."""
    for i in (0, shards - 1):
        yield [i] * shards
    for by in sorted(range(1, shards), key=lambda by: min(by, shards - by)):
        yield [(i + by) % shards for i in range(shards)]
    if shards > 2:
        for i, j in itertools.combinations(range(shards), 2):
            order = list(range(shards))
            order[i], order[j] = j, i
            yield order


def _rows(batch: Any, order: np.ndarray, leaf: int | None = None) -> Any:
    """The batch with its rows in another order, or those of one leaf only."""
    leaves, tree = jax.tree.flatten(batch)
    count = len(order)
    moved = [
        value[order] if leaf in (None, i) and np.shape(value)[:1] == (count,) else value
        for i, value in enumerate(leaves)
    ]
    return jax.tree.unflatten(tree, moved)
