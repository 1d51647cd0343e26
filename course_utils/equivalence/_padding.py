"""Masks that say which examples of a batch are real, and batches without their padding."""

import re
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np

from course_utils.equivalence._placed import is_key

_MASK = re.compile(r"mask|valid|weight", re.IGNORECASE)


def masks_of(batch: Any, rows: int) -> Iterator[int]:
    """Positions of the leaves that could be a mask over `rows` examples, the likeliest first."""
    found = []
    for i, (path, leaf) in enumerate(jax.tree_util.tree_leaves_with_path(batch)):
        if is_key(leaf) or np.shape(leaf) != (rows,):
            continue
        values = np.asarray(leaf)
        named = _MASK.search(jax.tree_util.keystr(path)) is not None
        binary = values.dtype == bool or np.isin(values.astype(float), (0, 1)).all()
        if binary and (named or values.dtype.kind in "bf"):
            found.append((not named, i))
    return (i for _, i in sorted(found))


def unpadded(batch: Any, like: Any) -> Any:
    """The examples of `batch` that its mask calls real, as a tree of `like`'s structure.

    `like` has the same leaves in the same order, with the mask among them or without. None where
    `batch` has no mask, or can't be brought into that form.
    """
    leaves, tree = jax.tree.flatten(batch)
    wanted = jax.tree.structure(like)
    rows = max((np.shape(leaf)[0] for leaf in leaves if np.shape(leaf)), default=0)
    for i in masks_of(batch, rows):
        kept = leaves if wanted == tree else leaves[:i] + leaves[i + 1 :]
        if len(kept) == wanted.num_leaves:
            real = np.flatnonzero(np.asarray(leaves[i]))
            cut = [leaf[real] if np.shape(leaf)[:1] == (rows,) else leaf for leaf in kept]
            return jax.tree.unflatten(wanted, cut)
    return None


def all_real(batch: Any, rows: int) -> Any:
    """The batch with its padding called real; None where it has no mask, or no padding."""
    leaves, tree = jax.tree.flatten(batch)
    for i in masks_of(batch, rows):
        mask = np.asarray(leaves[i])
        if not mask.all():
            return jax.tree.unflatten(tree, [*leaves[:i], np.ones_like(mask), *leaves[i + 1 :]])
    return None
