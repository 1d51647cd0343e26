"""Is what lies on the devices the batch that it should be?"""

import functools
import inspect
from collections import Counter
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from course_utils.equivalence._padding import mask_of, unpadded
from course_utils.equivalence._placed import is_data, read
from course_utils.equivalence._report import Leaf
from course_utils.equivalence._shards import rows_of


def compare_batches(batch: Any, expected: Any, shards: int) -> list[Leaf]:
    """A row for each leaf that isn't, entry for entry, the expected one.

    The same rows in another order are fine if all leaves share that order, and so is padding that
    a mask in `batch` leaves out, where the expected batch has none.
    """
    if _form(batch) != _form(expected):
        real = unpadded(batch, expected, mask_of(batch, rows_of(batch)))
        batch, shards = (batch, shards) if real is None else (real, 1)
    found = flatten(batch, "batch")
    wanted = flatten(expected, "batch")
    if found.keys() != wanted.keys():
        return missing_or_extra(found, wanted)
    differ, examples, expected_examples = [], [], []
    for path, leaf in found.items():
        value, reference = read(leaf, path).value, read(wanted[path], path).value
        examples.append(_rows(value))
        expected_examples.append(_rows(reference))
        if verdict := _compare(value, reference, shards):
            differ.append(Leaf(path, None, None, verdict, kind="batch"))
    shuffled = all("another order" in leaf.verdict for leaf in differ)
    return [] if shuffled and _same_examples(examples, expected_examples) else differ


def flatten(tree: Any, name: str) -> dict[str, Any]:
    """Leaves by their path, such as "state[0]['W']"; functions and texts are left out.

    Raises:
        TypeError: a leaf is an object that may hide arrays from the comparison.
    """
    leaves = [
        (name + jax.tree_util.keystr(path), leaf)
        for path, leaf in jax.tree_util.tree_leaves_with_path(tree)
    ]
    for path, leaf in leaves:
        if not (is_data(leaf) or isinstance(leaf, str | type) or _is_function(leaf)):
            raise TypeError(
                f"{path} is a {type(leaf).__name__}, which JAX doesn't take for a pytree, so what "
                "it holds can't be compared. Pass the arrays that it holds (for Flax: nnx.split), "
                "or register its class with jax.tree_util."
            )
    return {path: leaf for path, leaf in leaves if is_data(leaf)}


def missing_or_extra(found: dict[str, Any], wanted: dict[str, Any]) -> list[Leaf]:
    """Rows for the leaves that only one of two trees has."""
    missing = [Leaf(p, None, None, "missing", kind="structure") for p in wanted.keys() - found]
    extra = [
        Leaf(p, None, None, "the reference has no such leaf", kind="structure")
        for p in found.keys() - wanted
    ]
    return sorted([*missing, *extra], key=lambda leaf: leaf.path)


def _is_function(leaf: Any) -> bool:
    """Functions, also where jit, custom_jvp or a ufunc wraps them; not modules that can be called."""
    wrapped = isinstance(leaf, functools.partial | np.ufunc | jnp.ufunc)
    return wrapped or inspect.isroutine(leaf) or hasattr(leaf, "__wrapped__")


def _form(batch: Any) -> tuple[Any, list[tuple[int, ...]]]:
    return jax.tree.structure(batch), [np.shape(leaf) for leaf in jax.tree.leaves(batch)]


def _rows(value: np.ndarray) -> list[bytes]:
    return [row.tobytes() for row in value] if value.ndim else [value.tobytes()]


def _same_examples(examples: list[list[bytes]], wanted: list[list[bytes]]) -> bool:
    """Whether the leaves' rows, taken together, are the same examples in whatever order."""
    if len({len(rows) for rows in [*examples, *wanted]}) != 1:
        return False
    return Counter(zip(*examples, strict=True)) == Counter(zip(*wanted, strict=True))


def _compare(value: np.ndarray, wanted: np.ndarray, shards: int) -> str:
    """What is wrong with one leaf, "" if nothing."""
    if value.shape != wanted.shape or value.dtype != wanted.dtype:
        return f"{value.dtype}{value.shape}, the reference's is {wanted.dtype}{wanted.shape}"
    if value.tobytes() == wanted.tobytes():
        return ""
    rows, expected = _rows(value), _rows(wanted)
    gone = sum((Counter(expected) - Counter(rows)).values())
    if gone:
        return f"{gone} of the reference's {len(expected)} rows are missing, others stand in"
    return f"the reference's rows in another order{_in_shards(rows, expected, shards)}"


def _in_shards(rows: list[bytes], expected: list[bytes], shards: int) -> str:
    """Where whole shards have changed places, say which."""
    if len(rows) % shards:
        return ""
    size = len(rows) // shards
    blocks, wanted = (
        [tuple(side[i * size : (i + 1) * size]) for i in range(shards)] for side in (rows, expected)
    )
    if shards < 2 or not set(blocks) <= set(wanted):
        return ""
    return f": its shards are the reference's {', '.join(str(wanted.index(b)) for b in blocks)}"
