"""A batch as shards of its examples."""

from collections.abc import Iterator, Sequence
from typing import Any

import jax
import numpy as np


def shard_count(batch: Any, axes: dict[str, int], axis: int = 0) -> int:
    """Over how many shards an axis of a parallel batch lies, or is going to; 1: unknown."""
    counts = set()
    for leaf in jax.tree.leaves(batch):
        if isinstance(leaf, jax.Array) and leaf.ndim > axis and len(leaf.sharding.device_set) > 1:
            places = [shard.index[axis] for shard in leaf.addressable_shards]
            counts.add(len({place.indices(leaf.shape[axis]) for place in places}))
    sizes = [size for size in axes.values() if size > 1]
    if not counts and len(sizes) == 1:
        return sizes[0]  # a batch from the host, which the step splits by itself
    return max(counts, default=1)


def shards_of(batch: Any, shards: int, axis: int = 0) -> Iterator[Any]:
    """The batch cut into equal parts along the examples' axis; none if that doesn't divide."""
    rows = rows_of(batch, axis)
    size = rows // shards
    for i in range(shards if size * shards == rows else 0):
        part = (slice(None),) * axis + (slice(i * size, (i + 1) * size),)
        yield jax.tree.map(
            lambda leaf, part=part: leaf[part] if _length(leaf, axis) == rows else leaf, batch
        )


def merged(leaf: Any, leading: int) -> Any:
    """An array whose first `leading` axes are merged with the next one, that of the examples."""
    return leaf.reshape(-1, *leaf.shape[leading + 1 :]) if leading and np.shape(leaf) else leaf


def rows_of(batch: Any, axis: int = 0) -> int:
    """Examples in a batch: the most frequent size of their axis."""
    sizes = [_length(leaf, axis) for leaf in jax.tree.leaves(batch) if np.ndim(leaf) > axis]
    return max(sizes, key=sizes.count, default=0)


def uneven(counts: Sequence[int]) -> str:
    """What to do where shards hold `counts` real examples, "" if they all hold as many."""
    if len(set(counts)) < 2:
        return ""
    return (
        f"they hold {', '.join(map(str, counts))} real examples, and a mean of their means weighs "
        "them equally. Add up the losses and the counts over the devices (psum), then divide."
    )


def _length(leaf: Any, axis: int) -> int:
    return np.shape(leaf)[axis] if np.ndim(leaf) > axis else -1
