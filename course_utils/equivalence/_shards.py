"""A batch as shards of its examples."""

import re
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np

from course_utils.equivalence._placed import is_key

_MASK = re.compile(r"mask|valid|weight", re.IGNORECASE)


def shard_count(batch: Any, axes: dict[str, int]) -> int:
    """Over how many shards the first axis of a parallel batch lies, or is going to; 1: unknown."""
    counts = set()
    for leaf in jax.tree.leaves(batch):
        if isinstance(leaf, jax.Array) and leaf.ndim and len(leaf.sharding.device_set) > 1:
            counts.add(
                len({shard.index[0].indices(leaf.shape[0]) for shard in leaf.addressable_shards})
            )
    sizes = [size for size in axes.values() if size > 1]
    if not counts and len(sizes) == 1:
        return sizes[0]  # a batch from the host, which the step splits by itself
    return max(counts, default=1)


def shards_of(batch: Any, shards: int) -> Iterator[Any]:
    """The batch cut into equal parts along the examples' axis; none if that doesn't divide."""
    rows = rows_of(batch)
    size = rows // shards
    for i in range(shards if size * shards == rows else 0):
        yield jax.tree.map(
            lambda leaf, i=i: (
                leaf[i * size : (i + 1) * size] if np.shape(leaf)[:1] == (rows,) else leaf
            ),
            batch,
        )


def rows_of(batch: Any) -> int:
    """Examples in a batch: the most frequent leading size."""
    sizes = [np.shape(leaf)[0] for leaf in jax.tree.leaves(batch) if np.shape(leaf)]
    return max(sizes, key=sizes.count, default=0)


def uneven_mask(batch: Any, shards: int) -> str:
    """Describe a mask of the batch that gives the shards unequal numbers of valid examples."""
    rows = rows_of(batch)
    if shards < 2 or not rows or rows % shards:
        return ""
    for path, leaf in jax.tree_util.tree_leaves_with_path(batch):
        name = jax.tree_util.keystr(path)
        if np.shape(leaf)[:1] != (rows,) or is_key(leaf):
            continue
        values = np.asarray(leaf)
        binary = values.ndim == 1 and np.isin(values.astype(float), (0, 1)).all()
        if values.dtype == bool or (binary and (_MASK.search(name) or values.dtype.kind == "f")):
            counts = values.reshape(shards, -1).astype(float).sum(axis=1).astype(int)
            if len(set(counts)) > 1:
                return (
                    f"batch{name} leaves {', '.join(map(str, counts))} valid examples on the "
                    "shards, and a mean of their means weighs them equally. Add up the losses and "
                    "the counts over the devices (psum), then divide."
                )
    return ""
