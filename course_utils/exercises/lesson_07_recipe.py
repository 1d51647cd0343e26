"""Exercise 07.3: an older recipe in today's JAX."""

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from course_utils.exercises.definition import defined
from course_utils.exercises.forms import function
from course_utils.exercises.way import along

DEVICES, ROWS = 8, 32  # of the recipe, whatever there is here
RATE, DECAY, DECAY_STEPS = 0.01, 0.9, 1000
# A cosine: TF32 turns a gradient by a thousandth or two, 32 of the 256 images by several hundredths.
STRAIGHT = 0.9995


@defined(
    "07.3",
    "Translate an older recipe",
    kind="fill the gap",
    trains=("train with `pmap`, with `jit` on sharded arrays", "translate older code"),
    form=function("params", "batch", "number"),
    hints=(
        "There is no axis of devices in the batch any more, so no collective either: the mean "
        "over 256 images is one `jnp.mean`. Does the old code compute the mean of the gradients?",
        "`psum` adds up the gradients of 8 means, each of 32 images. Compare that with the "
        "gradient of the mean over all 256. What makes one of the other?",
    ),
    right="The number of devices was part of the recipe, hidden in `psum`: on other hardware the "
    "old code would have been another recipe. In yours it stands where one can read it.",
)
def recipe_step(
    step: Callable,
    devices: Sequence[jax.Device],
    predict: Callable,
    params: Any,
    images: np.ndarray,
    targets: np.ndarray,
) -> Iterator[tuple[Any, str]]:
    """Run the learner's step on sharded arrays, and the old one on 8 devices that `vmap` plays."""
    batch = tuple(x.reshape(-1, x.shape[-1])[: DEVICES * ROWS] for x in (images, targets))
    run, old = _on_sharded_arrays(step, devices, params, batch), jax.device_get(params)
    result = run(0)
    yield result is None, "Your function returns nothing: return the new parameters and the loss."
    yield (
        not isinstance(result, tuple) or len(result) != 2,
        "Return two things, as `return a, b` does: the new parameters, then the loss.",
    )
    yield (
        jax.tree.map(np.shape, result[0]) != jax.tree.map(np.shape, old),
        "The first thing that you return hasn't the tree and the shapes of the parameters.",
    )
    older = jax.jit(functools.partial(_older_step, predict))
    home = jax.device_put((old, batch), devices[0])
    wanted, loss = older(*home, 0)
    far, straight = along(result[0], wanted, old)
    yield from _direction(straight, result[0], old, predict, home)
    yield from _length(far, len(devices))
    reached = {n: along(run(n)[0], wanted, old)[0] for n in (DECAY_STEPS // 2, DECAY_STEPS)}
    yield from _decay(reached)
    yield (
        np.shape(result[1]) != () or not np.allclose(result[1], loss, rtol=1e-2),
        "The parameters are right. The loss isn't the mean squared error of the 256 images.",
    )


def _on_sharded_arrays(
    step: Callable, devices: Sequence[jax.Device], params: Any, batch: Any
) -> Callable:
    """The jitted step as a function of its number, on the most devices that divide the batch."""
    several = devices[: math.gcd(len(devices), DEVICES * ROWS)]
    mesh = jax.make_mesh((len(several),), ("data",), (AxisType.Auto,), devices=several)
    placed = jax.device_put(params, NamedSharding(mesh, P()))
    split = jax.device_put(batch, NamedSharding(mesh, P("data")))
    compiled = jax.jit(step)
    return lambda number: jax.device_get(compiled(placed, split, number))


def _squared_error(predict: Callable, params: Any, batch: Any) -> jax.Array:
    images, targets = batch
    return jnp.mean((predict(params, images) - targets) ** 2)


def _older_step(predict: Callable, params: Any, batch: Any, number: Any) -> tuple[Any, jax.Array]:
    """What the lesson shows as older code, on 8 devices in name; one copy of its results."""

    def local(params: Any, batch: Any) -> tuple[Any, jax.Array]:
        error = functools.partial(_squared_error, predict)
        loss, grads = jax.value_and_grad(error)(params, batch)
        grads, loss = jax.lax.psum(grads, "batch"), jax.lax.pmean(loss, "batch")
        rate = RATE * DECAY ** (number / DECAY_STEPS)
        return jax.tree.map(lambda p, g: p - rate * g, params, grads), loss

    stacked = jax.tree.map(lambda x: x.reshape(DEVICES, ROWS, -1), batch)
    copies = jax.vmap(local, in_axes=(None, 0), axis_name="batch")(params, stacked)
    return jax.tree.map(lambda x: x[0], copies)


def _direction(
    straight: float, new: Any, old: Any, predict: Callable, home: Any
) -> Iterator[tuple[bool, str]]:
    def entropy(params: Any, batch: Any) -> jax.Array:
        return optax.softmax_cross_entropy(predict(params, batch[0]), batch[1]).mean()

    def squashed(params: Any, batch: Any) -> jax.Array:
        return _squared_error(lambda p, x: jax.nn.softmax(predict(p, x)), params, batch)

    def goes_down(loss_fn: Callable) -> bool:
        grads = jax.grad(loss_fn)(*home)
        return along(new, jax.tree.map(lambda p, g: p - g, old, grads), old)[1] > STRAIGHT

    yield straight == 0, "The parameters come out as they went in: nothing was learnt."
    yield straight < -STRAIGHT, "This step goes up the gradient, not down."
    off = straight < STRAIGHT
    yield off and goes_down(entropy), "That is the gradient of the cross-entropy."
    yield off and goes_down(squashed), "The outputs are compared as they are, without a softmax."
    yield off, "The step doesn't go down the gradient of the mean squared error of all 256 images."


def _length(far: float, here: int) -> Iterator[tuple[bool, str]]:
    classes = 10
    for factor, message in (
        (
            1 / DEVICES,
            "The direction is right, the step too short, by the number of the recipe's devices. "
            "You took the mean of the gradients; what did `psum` take?",
        ),
        (classes, "The mean runs over images *and* classes, in the old code as in section 4."),
        (classes / DEVICES, "The error isn't divided by the classes here, and there it is."),
        (DEVICES, "The direction is right, the step too long: that factor is in it twice."),
        (
            here / DEVICES,
            "You took the number of devices here. The recipe was written for another number.",
        ),
    ):
        yield abs(far - 1) > 0.02 and abs(far / factor - 1) < 0.02, message
    yield abs(far - 1) > 0.02, "The direction is right, the length of the first step isn't."


def _decay(reached: dict[int, float]) -> Iterator[tuple[bool, str]]:
    half, whole = reached.values()
    yield abs(whole - 1) < 0.02, "The first step is right. But the rate never falls."
    yield whole < 0.5, "The rate falls far too fast: by 0.9 in 1,000 steps, not in each."
    yield (
        abs(whole - DECAY) < 0.02 and abs(half - 1) < 0.02,
        "The rate falls in stairs, once in 1,000 steps; the old code's falls a little in each step.",
    )
    yield (
        abs(whole - DECAY) > 0.02 or abs(half - DECAY**0.5) > 0.02,
        "The first step is right. Later the rate isn't that of the old code.",
    )
