"""Ask the reference what it would do under a suspected fault; an answer that fits names it."""

import contextlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from course_utils.equivalence._change import Change, norm, wide
from course_utils.equivalence._factors import is_first_moment
from course_utils.equivalence._placed import read
from course_utils.equivalence._shards import rows_of, uneven_mask

_MOST_REPLAYS = 60


@dataclass(frozen=True)
class Replay:
    """What replays need.

    Attributes:
        run: batch -> the reference's state after this step, as {path: leaf}, from fresh copies.
        batch: the reference's batch of this step.
        parts: the shards of the parallel step's batch, each as the reference takes it.
        changes: the state's leaves that differ by a numeric error.
        has_key: whether state or batch carry a random key.
    """

    run: Callable[[Any], dict[str, Any]]
    batch: Any
    parts: Sequence[Any]
    changes: Sequence[Change]
    has_key: bool

    @property
    def shards(self) -> int:
        return len(self.parts)


def suggest_by_replay(replay: Replay) -> str:
    """The fault under which the reference does what the parallel step did; "" if none fits."""
    if not replay.changes:
        return ""
    said = _per_shard(replay) or _moved_shards(replay)
    if said:
        return said
    if mask := uneven_mask(replay.batch, replay.shards):
        return f"no factor and no replica tells; likely a mean of means over ragged shards: {mask}"
    if replay.has_key:
        return (
            "no factor and no replica tells; likely the random numbers: fold each example's "
            "position in the global batch into the key, so that they don't depend on the devices."
        )
    return ""


def _per_shard(replay: Replay) -> str:
    """Run the reference on each shard alone: is the parallel update their mean, or one of them?"""
    with contextlib.suppress(Exception):  # the reference may not take a batch of this size
        states = [replay.run(part) for part in replay.parts]
        # Moments and plain updates are linear in the gradient, so their means mean something.
        linear = [c for c in replay.changes if is_first_moment(c.path)] or replay.changes
        for number, state in enumerate(states):
            if _explains(linear, [state]):
                return f"only shard {number} of the batch counts: the others' gradients are lost."
        if states and _explains(linear, states):
            return _mean_of_shards(replay)
    return ""


def _mean_of_shards(replay: Replay) -> str:
    found = (
        "the parallel update is the mean of what one device does with each shard alone, and that "
        "isn't what it does with all examples. "
    )
    if mask := uneven_mask(replay.batch, replay.shards):
        return f"{found}Likely a mean of means over ragged shards: {mask}"
    if replay.has_key:
        return (
            f"{found}Likely the same random key on every device, so that all shards draw the same "
            "numbers: fold each example's position in the global batch into the key. "
            "(Gradients that are clipped before they are reduced look like this too.)"
        )
    return (
        f"{found}Something that isn't linear in the gradient, or that looks at the whole batch, is "
        "done per shard: gradients clipped (or normalised) before they are reduced, batch statistics."
    )


def _moved_shards(replay: Replay) -> str:
    """Try other orders of one leaf's shards against the rest of the batch."""
    leaves, tree = jax.tree.flatten(replay.batch)
    paths = [
        jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(replay.batch)
    ]
    rows = rows_of(replay.batch)
    split = [i for i, leaf in enumerate(leaves) if np.shape(leaf)[:1] == (rows,)]
    if replay.shards < 2 or rows % replay.shards or len(split) < 2:
        return ""
    trials = itertools.product(_orders(replay.shards), split)
    for order, i in itertools.islice(trials, _MOST_REPLAYS):
        with contextlib.suppress(Exception):  # a leaf of keys, or a step that checks its batch
            blocks = np.split(np.asarray(leaves[i]), replay.shards)
            moved = [*leaves[:i], np.concatenate([blocks[j] for j in order]), *leaves[i + 1 :]]
            if _explains(replay.changes, [replay.run(jax.tree.unflatten(tree, moved))]):
                return (
                    f"the shards of batch{paths[i]} meet the wrong part of the batch: the update is "
                    f"that of one device if they come in the order {', '.join(map(str, order))}."
                )
    return ""


def _orders(shards: int) -> Iterator[list[int]]:
    """Rolls by one to either side and further, then swaps of two."""
    for by in sorted(range(1, shards), key=lambda by: min(by, shards - by)):
        yield [(i + by) % shards for i in range(shards)]
    if shards > 2:
        for i, j in itertools.combinations(range(shards), 2):
            order = list(range(shards))
            order[i], order[j] = j, i
            yield order


def _explains(changes: Sequence[Change], states: list[dict[str, Any]]) -> bool:
    """Whether the mean of `states` accounts for nearly all of each leaf's difference."""
    for change in changes:
        values = [wide(read(state[change.path], change.path).value) for state in states]
        left = norm(sum(values) / len(values) - wide(change.new.value))
        if not left <= 0.05 * change.error + 2 * change.rounding:
            return False
    return True
