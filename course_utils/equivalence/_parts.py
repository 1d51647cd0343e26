"""Parts of a training step with which it can do on many devices what it does on one."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

AxisName = str | tuple[str, ...]


def example_keys(key: jax.Array, examples: int, axis_name: AxisName | None = None) -> jax.Array:
    """One random key for each example, by its place in the global batch, on however many devices.

    A mask drawn from an example's own key is the same whichever device draws it.

    Args:
        key: the step's key, the same on every device.
        examples: how many there are here: in the whole batch, or in this device's shard.
        axis_name: inside shard_map or pmap the mesh axis (or axes) that the batch is split over;
            None where the whole batch is in sight, as under jit with sharded arrays.

    Returns:
        Keys of shape (examples,), for jax.vmap.

    Example:
        keys = example_keys(key, len(x), "data")
        kept = jax.vmap(lambda k: jax.random.bernoulli(k, 0.9, x.shape[1:]))(keys)
    """
    first = 0 if axis_name is None else jax.lax.axis_index(axis_name) * examples
    return jax.vmap(jax.random.fold_in, in_axes=(None, 0))(key, first + jnp.arange(examples))


def pad_batch(batch: Any, multiple_of: int) -> tuple[Any, np.ndarray]:
    """Lengthen a batch until its examples divide, and say which of them are real.

    Padding repeats the last example, so that nothing overflows or divides by zero in it.

    Args:
        batch: a pytree of arrays that all lead with the examples, one at least.
        multiple_of: the number of devices; or the usual batch size, so that a short last batch
            runs in the program that is compiled already.

    Returns:
        (batch, mask): the mask is a float32 array of shape (examples,), 1 for a real example and
        0 for padding.

    Raises:
        ValueError: leaves differ in their number of examples, or have none; multiple_of < 1.
    """
    counts = {np.shape(leaf)[:1] for leaf in jax.tree.leaves(batch)}
    if multiple_of < 1 or len(counts) != 1 or not (count := sum(*counts)):
        raise ValueError(
            f"pad_batch needs leaves that lead with the same number of examples, and multiple_of "
            f">= 1; the leaves lead with {sorted(counts)}, multiple_of is {multiple_of}."
        )
    rows = np.arange(-(-count // multiple_of) * multiple_of)
    padded = jax.tree.map(lambda leaf: leaf[np.minimum(rows, count - 1)], batch)
    return padded, (rows < count).astype(np.float32)


def weighted_mean(
    values: jax.Array, weights: jax.Array, axis_name: AxisName | None = None
) -> jax.Array:
    """Mean over all examples on all devices, each weighted: 0 leaves padding out.

    It adds up values and weights, and divides once. The mean of the devices' means is another
    number wherever their weights don't add up alike.

    Args:
        values: one for each example, shape (examples,).
        weights: such as the mask of `pad_batch`, same shape.
        axis_name: inside shard_map or pmap the mesh axis (or axes) that the batch is split over.

    Returns:
        A scalar, the same on every device. Under shard_map (with check_vma=True, its default) its
        gradient with respect to replicated parameters is complete as it comes; with respect to
        parameters made varying (`jax.lax.pcast`) it is this device's part: `psum` those parts,
        not `pmean`. Under pmap, or with check_vma=False, differentiate
        `(values * weights).sum()`, psum that gradient, and divide it by the psum of the weights.
    """
    total, weight = (values * weights).sum(), weights.sum()
    if axis_name is not None:
        total, weight = jax.lax.psum((total, weight), axis_name)
    return total / weight
