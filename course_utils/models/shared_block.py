"""One hidden block applied again and again, as lesson 04_mesh_and_sharding builds it.

Compute grows with the repetitions; the parameters, and so the gradients, don't.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax

Params = dict[str, dict[str, jax.Array]]
Loss = Callable[[Params, Any], tuple[jax.Array, jax.Array]]


def init_params(key: jax.Array, width: int) -> Params:
    """An entry, one shared block and an exit; He-scaled weights and zero biases, float32.

    Shapes: enter W (784, width), block W (width, width), leave W (width, 10), each with its b.
    """
    shapes = {"enter": (784, width), "block": (width, width), "leave": (width, 10)}
    return {
        name: {"W": jax.random.normal(k, (a, b)) * (2 / a) ** 0.5, "b": jnp.zeros(b)}
        for k, (name, (a, b)) in zip(jax.random.split(key, 3), shapes.items(), strict=True)
    }


def predict(params: Params, images: jax.Array, repeats: int, mix: float) -> jax.Array:
    """Logits (n, 10) of images (n, 784): the block is mixed in `repeats` times."""

    def apply(layer: str, x: jax.Array) -> jax.Array:
        return x @ params[layer]["W"] + params[layer]["b"]

    def block(hidden: jax.Array, _: None) -> tuple[jax.Array, None]:
        return (1 - mix) * hidden + mix * jax.nn.gelu(apply("block", hidden)), None

    hidden, _ = jax.lax.scan(block, jax.nn.gelu(apply("enter", images)), None, length=repeats)
    return apply("leave", hidden)


def make_loss(repeats: int, mix: float) -> Loss:
    """Make the loss (params, batch) -> (mean cross-entropy, accuracy), two float32 scalars.

    A batch is a pair of images, float32 (n, 784), and labels, int32 (n,).
    """

    def loss_and_accuracy(params: Params, batch: Any) -> tuple[jax.Array, jax.Array]:
        images, labels = batch
        logits = predict(params, images, repeats, mix)
        loss = optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()
        return loss, jnp.mean(jnp.argmax(logits, axis=-1) == labels)

    return loss_and_accuracy
