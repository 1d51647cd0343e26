"""Masks that say which examples of a batch are real, and batches without their padding."""

import re
from typing import Any

import jax
import numpy as np

from course_utils.equivalence._placed import is_key

_MASK = re.compile(r"mask|valid|weight", re.IGNORECASE)


def mask_of(batch: Any, rows: int) -> int | None:
    """Position of the leaf that is a mask over `rows` examples: ones and zeros, called so.

    A leaf without such a name counts if it ends in all its zeros, as labels of two classes don't.
    """
    unnamed = None
    for i, (path, leaf) in enumerate(jax.tree_util.tree_leaves_with_path(batch)):
        if is_key(leaf) or np.shape(leaf) != (rows,):
            continue
        values = np.asarray(leaf)
        if not (values.dtype == bool or np.isin(values.astype(float), (0, 1)).all()):
            continue
        if _MASK.search(jax.tree_util.keystr(path)):
            return i
        if values.dtype.kind in "bf" and not np.any(values[1:] > values[:-1]) and values[:1].any():
            unnamed = i if unnamed is None else unnamed
    return unnamed


def real_count(batch: Any, mask: int | None, rows: int) -> int:
    """Examples that the leaf in position `mask` calls real; all of them without one."""
    return rows if mask is None else int(np.asarray(jax.tree.leaves(batch)[mask]).sum())


def is_pair(batch: Any) -> bool:
    """Whether a batch is a pair (batch, mask), as pad_batch returns it."""
    if not (isinstance(batch, tuple | list) and len(batch) == 2):
        return False
    rows = np.shape(batch[1])
    if len(rows) != 1 or any(np.shape(leaf)[:1] != rows for leaf in jax.tree.leaves(batch)):
        return False
    return mask_of(batch, *rows) == len(jax.tree.leaves(batch)) - 1


def unpadded(batch: Any, like: Any, mask: int | None) -> Any:
    """The real examples of `batch` as a tree of `like`'s structure, None if that can't be.

    `like` has the same leaves in the same order, with the mask among them or without.
    """
    leaves = jax.tree.leaves(batch)
    if mask is None:
        return None
    real = np.flatnonzero(np.asarray(leaves[mask]))
    rows = np.shape(leaves[mask])
    cut = [leaf[real] if np.shape(leaf)[:1] == rows else leaf for leaf in leaves]
    return _like(cut, like, mask)


def all_real(batch: Any, like: Any, mask: int | None) -> Any:
    """The batch with padding that counts, as a tree of `like`'s structure; None without padding."""
    leaves = jax.tree.leaves(batch)
    if mask is None or np.asarray(leaves[mask]).all():
        return None
    leaves[mask] = np.ones_like(np.asarray(leaves[mask]))
    return _like(leaves, like, mask)


def _like(leaves: list[Any], like: Any, mask: int) -> Any:
    tree = jax.tree.structure(like)
    if len(leaves) == tree.num_leaves + 1:
        leaves = leaves[:mask] + leaves[mask + 1 :]
    return jax.tree.unflatten(tree, leaves) if len(leaves) == tree.num_leaves else None
