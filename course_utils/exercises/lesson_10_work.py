"""Exercise 10.1: the work in a step."""

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from course_utils.exercises.definition import defined
from course_utils.exercises.forms import named, number


@defined(
    "10.1",
    "Predict what a step has to do",
    kind="predict",
    trains=("find out where a step's time goes",),
    form=named(
        {
            "forward, MFLOP": number(),
            "step, MFLOP": number(),
            "least ms": number(),
            "part": number(),
        }
    ),
    hints=(
        "Write down the products of one layer: forward, for the gradient of its weights, for the "
        "gradient of its input. All three have as many operations. A product of (m, k) with (k, n) has "
        "m·n sums of k terms, and each term is a multiplication and an addition.",
        "Whose input does nobody want to change? Leave out the product that would say how. Operations "
        "divided by operations per second are seconds.",
    ),
    right="So that is what the machine must do, and how well it does it. A part is honest across sizes, "
    "optimizers and machines, where milliseconds aren't.",
)
def work_of_a_step(
    answer: dict[str, Any], sizes: list[int], batch: int, gflops: float, ms: float
) -> Iterator[tuple[Any, str]]:
    """Count the products in the traced programs of the network with these sizes."""
    forward, step = _mflop(sizes, batch)
    given = answer["forward, MFLOP"]
    yield _near(2 * given, forward), "Forward: a multiplication and an addition are two operations."
    yield _near(given * batch, forward), "Forward: that is one image. A batch has more of them."
    yield _near(given / 1e6, forward), "Forward: in millions of operations, please."
    yield not _near(given, forward), "Forward: one product for each layer, images times weights."
    given = answer["step, MFLOP"]
    yield (
        _near(given, forward),
        "Step: it goes backward, too, through the same layers with products of the same size.",
    )
    yield (
        _near(given, 2 * forward),
        "Step: backward, a layer has more to answer than one question.",
    )
    yield (
        _near(given, 3 * forward),
        "Nearly: one of these products has a result that nobody reads, and it isn't the smallest.",
    )
    yield (
        not _near(given, step),
        "Step: add up the products that the gradients of the weights need.",
    )
    given, least = answer["least ms"], step / gflops
    yield _near(given * 1000, least), "Least: that is in seconds."
    yield not _near(given, least), "Least: the operations of the whole step, at the rate given."
    given, part = answer["part"], least / ms
    yield _near(given, 1 / part), "Part: that is how many times too long; a part is below 1."
    yield _near(given, 1 - part), "Part: that is what could be saved, all that isn't a product."
    yield _near(given, 100 * part), "Part: as a part of 1, please."
    yield not _near(given, part), "Part: the least time over the measured one."


def _mflop(sizes: list[int], batch: int) -> tuple[float, float]:
    """Millions of operations in the products of the forward pass, and of the gradients' program."""
    from course_utils.flops import matmul_flops
    from course_utils.models.mlp import init_params, loss_and_accuracy, predict

    params = jax.eval_shape(lambda: init_params(jax.random.key(0), sizes))
    images = jax.ShapeDtypeStruct((batch, sizes[0]), jnp.float32)
    labels = jax.ShapeDtypeStruct((batch,), jnp.int32)
    gradients = jax.value_and_grad(loss_and_accuracy, has_aux=True)
    return (
        matmul_flops(predict, params, images) / 1e6,
        matmul_flops(gradients, params, (images, labels)) / 1e6,
    )


def _near(a: float, b: float) -> bool:
    return bool(np.isclose(a, b, rtol=1e-2, atol=0))
