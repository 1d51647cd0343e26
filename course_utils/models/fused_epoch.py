"""A whole epoch as one compiled program, as lesson 10_ninety_percent builds it."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import optax

Prepare = Callable[[jax.Array], jax.Array]
DrawRows = Callable[[jax.Array, int, int], jax.Array]
Epoch = Callable[[Any, jax.Array, Any, Any], tuple[Any, dict[str, jax.Array]]]


def shuffled_rows(key: jax.Array, count: int, batch_size: int) -> jax.Array:
    """Draw the order of one epoch: int32 (steps, batch_size), no index of `count` twice.

    Only whole batches: the indices that fill none are left out, others in every epoch. The
    32 bits of a number hold the index and the draw, 16 bits of chance for up to 65,536 images.
    Images that draw the same stand side by side in their order: in one batch, where it is no matter.

    Raises:
        ValueError: `count` images fill not one batch.
    """
    steps = count // batch_size
    if not steps:
        raise ValueError(f"{count} images don't fill one batch of {batch_size}.")
    # A random number above each index, sorted as plain integers. jax.random.permutation sorts pairs,
    # which takes eight times as long on a CPU: as long as seven of the steps that follow.
    index_bits = (count - 1).bit_length()
    indices = jnp.arange(count, dtype=jnp.uint32)
    ranked = jnp.sort((jax.random.bits(key, (count,), jnp.uint32) << index_bits) | indices)
    order = (ranked & (2**index_bits - 1)).astype(jnp.int32)
    return order[: steps * batch_size].reshape(steps, batch_size)


def make_update(
    loss_fn: Callable[[Any, Any], tuple[jax.Array, jax.Array]],
    optimizer: optax.GradientTransformation,
) -> Callable[[Any, Any], tuple[Any, dict[str, jax.Array]]]:
    """One update (params, optimizer state), batch -> the same, new, and its metrics; not jitted.

    The metrics are those before the update, {"loss", "accuracy"}, float32 scalars. Beside
    `mlp.make_train_step` it leaves out the norm of the gradients.
    """

    def update(state: Any, batch: Any) -> tuple[Any, dict[str, jax.Array]]:
        params, opt_state = state
        (loss, accuracy), grads = jax.value_and_grad(loss_fn, has_aux=True)(params, batch)
        updates, opt_state = optimizer.update(grads, opt_state, params)
        params = optax.apply_updates(params, updates)
        return (params, opt_state), {"loss": loss, "accuracy": accuracy}

    return update


def make_epoch(
    loss_fn: Callable[[Any, Any], tuple[jax.Array, jax.Array]],
    optimizer: optax.GradientTransformation,
    batch_size: int,
    prepare: Prepare,
    draw_rows: DrawRows = shuffled_rows,
) -> Epoch:
    """Jit an epoch `(state, key, images, labels) -> (state, metrics)`: one scan over its steps.

    The state is the pair (params, optimizer state), committed as a whole (`mlp.init_state`). It
    is **donated**: the epoch overwrites it, so use the one that is returned, and no other array that
    may share its memory, such as params that were handed to `init_state` on the same device. `key`
    decides the order. Images, uint8 (n, 28, 28), and labels, uint8 (n,), stay on the device as they are: each
    step gathers its own batch there and prepares it. The metrics are those before each update,
    {"loss", "accuracy"}, float32 (n // batch_size,): fetch them once per epoch.

    Args:
        loss_fn: (params, batch) -> (loss, accuracy), such as `mlp.loss_and_accuracy`; the batch
            is a pair of what `prepare` returns and labels, int32 (batch_size,).
        optimizer: any Optax optimizer.
        batch_size: images per step; what fills no whole batch is left out of that epoch.
        prepare: uint8 images (batch_size, 28, 28) -> the model's input, traced into the step, such
            as `recipe.standardiser(images)` or `mlp.to_model_input`.
        draw_rows: (key, count, batch_size) -> indices (steps, batch_size). To repeat the steps of
            a plain loop, return that loop's order: `lambda *_: rows`.
    """
    update = make_update(loss_fn, optimizer)

    @partial(jax.jit, donate_argnums=0)
    def epoch(state: Any, key: jax.Array, images: Any, labels: Any) -> tuple[Any, Any]:
        def step(state: Any, rows: jax.Array) -> tuple[Any, dict[str, jax.Array]]:
            return update(state, (prepare(images[rows]), labels[rows].astype(jnp.int32)))

        return jax.lax.scan(step, state, draw_rows(key, len(images), batch_size))

    return epoch
