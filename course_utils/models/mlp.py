"""The multilayer perceptron and its training step, as lesson 01_training_loop builds them."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

Params = list[dict[str, jax.Array]]
Batch = tuple[jax.Array, jax.Array]


def to_model_input(images: np.ndarray) -> np.ndarray:
    """Turn uint8 images (n, 28, 28) into float32 rows (n, 784) in [0, 1]."""
    return images.reshape(len(images), -1).astype(np.float32) / 255


def make_batches(
    images: np.ndarray, labels: np.ndarray, batch_size: int, device: jax.Device
) -> list[Batch]:
    """Shuffle once and put whole batches on `device`; the images that fill no batch are left out.

    Args:
        images: uint8 (n, 28, 28).
        labels: uint8 (n,).
        batch_size: images per batch.
        device: where every batch is committed; a sharding works too.

    Returns:
        n // batch_size pairs of images, float32 (batch_size, 784), and labels, int32
        (batch_size,).
    """
    order = np.random.default_rng(0).permutation(len(images))
    whole = len(images) // batch_size * batch_size
    return [
        jax.device_put((to_model_input(images[rows]), labels[rows].astype(np.int32)), device)
        for rows in order[:whole].reshape(-1, batch_size)
    ]


def init_params(key: jax.Array, sizes: Sequence[int]) -> Params:
    """He-scaled normal weights and zero biases, float32: one dict for each layer.

    `sizes` are the widths from input to output; layer i has W (sizes[i], sizes[i + 1]) and
    b (sizes[i + 1],).
    """
    keys = jax.random.split(key, len(sizes) - 1)
    return [
        {"W": jax.random.normal(k, (n, m)) * (2 / n) ** 0.5, "b": jnp.zeros(m)}
        for k, n, m in zip(keys, sizes[:-1], sizes[1:], strict=True)
    ]


def predict(params: Params, images: jax.Array) -> jax.Array:
    """Logits (n, classes) of images (n, 784); GELU after every layer but the last."""
    hidden = images
    for layer in params[:-1]:
        hidden = jax.nn.gelu(hidden @ layer["W"] + layer["b"])
    return hidden @ params[-1]["W"] + params[-1]["b"]


def loss_and_accuracy(params: Params, batch: Batch) -> tuple[jax.Array, jax.Array]:
    """Mean cross-entropy and accuracy of a batch, two float32 scalars."""
    images, labels = batch
    logits = predict(params, images)
    loss = optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()
    accuracy = jnp.mean(jnp.argmax(logits, axis=-1) == labels)
    return loss, accuracy


def make_train_step(
    loss_fn: Callable[[Any, Any], tuple[jax.Array, jax.Array]],
    optimizer: optax.GradientTransformation,
) -> Callable[[Any, Any], tuple[Any, dict[str, jax.Array]]]:
    """Jit a step `(params, optimizer state), batch -> the same, new, and its metrics`.

    The metrics are those before the update: loss, accuracy and the gradient's global norm,
    float32 scalars.

    Args:
        loss_fn: (params, batch) -> (loss, accuracy), such as `loss_and_accuracy`.
        optimizer: any Optax optimizer.
    """

    @jax.jit
    def train_step(state: Any, batch: Any) -> tuple[Any, dict[str, jax.Array]]:
        params, opt_state = state
        compute = jax.value_and_grad(loss_fn, has_aux=True)
        (loss, accuracy), grads = compute(params, batch)
        updates, opt_state = optimizer.update(grads, opt_state, params)
        params = optax.apply_updates(params, updates)
        metrics = {"loss": loss, "accuracy": accuracy, "gradient norm": optax.tree.norm(grads)}
        return (params, opt_state), metrics

    return train_step


def init_state(
    params: Any, optimizer: optax.GradientTransformation, device: jax.Device
) -> tuple[Any, optax.OptState]:
    """Params and a fresh optimizer state, committed to `device` together (or to a sharding)."""
    return jax.device_put((params, optimizer.init(params)), device)
