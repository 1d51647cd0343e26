"""Faults that are tried one after another on the reference, the commoner first."""

import itertools
from collections.abc import Iterator

import jax
import numpy as np

from course_utils.equivalence._copies import holds_keys
from course_utils.equivalence._replay import Replay, rows
from course_utils.equivalence._shards import rows_of

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
        )
    return ""


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


def other_keys(replay: Replay) -> str:
    """Keys that depend on the device, or on nothing."""
    reference = replay.reference
    if reference.key is None and not holds_keys((reference.before, reference.batch)):
        return ""
    count = len(replay.parts)
    for own in (
        lambda i: lambda key: jax.random.fold_in(key, i),
        lambda i: lambda key: jax.random.split(key, count)[i],
    ):
        answers = [replay.ask_with_keys(part, own(i)) for i, part in enumerate(replay.parts)]
        if replay.explains(answers):
            return (
                "each device has a key of its own (axis_index folded in, or one of "
                "split(key, devices)), so what an example draws depends on the number of devices. "
                "Give each example its own key, by its place in the global batch (example_keys)."
            )
    for number in range(1, reference.number) if reference.key is not None else ():
        if replay.explains([replay.ask(reference.batch, key=reference.key_of(number))]):
            return (
                f"the update is the one that the random key of step {number} gives: the same key "
                "in every step, or one that is a step late."
            )
    if not replay.random:
        return ""
    return (
        "no factor and no replica tells, and the reference's update depends on its random key: "
        "likely the random numbers. Give each example its own key, by its place in the global "
        "batch (example_keys), and use the key that the step is called with."
    )


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
        if replay.explains([replay.ask(rows(batch, blocks[order].ravel(), i))]):
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
