"""Exercise 07.4: what the devices' copies of the parameters hear of each other."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import numpy as np

from course_utils.exercises.definition import defined
from course_utils.exercises.forms import named, number, whole_number
from course_utils.exercises.way import along

OFF, STEPS = 1e-3, 10


@defined(
    "07.4",
    "Follow a copy that is off",
    kind="predict",
    trains=("translate older code", "say what `psum`, `pmean`"),
    form=named({"apart": number(), "losses": whole_number(), "times the rate": number()}),
    hints=(
        "Read `pmap_step` line by line, as the last device. Which of the numbers in it come from "
        "other devices? And from what does the update start?",
        "Write down what two copies are after a step, p - rate * g and q - rate * g, and subtract. "
        "For the last question: what is `psum` of some numbers, if you know their mean?",
    ),
    right="Parameters are never exchanged, so nothing mends a copy that is off, and the averaged "
    "loss doesn't tell. That is why the copies are compared, and why they must start equal.",
)
def off(
    answer: dict[str, Any],
    step: Callable,
    loss_fn: Callable,
    devices: Sequence[jax.Device],
    params: Any,
    batch: Any,
    rate: float,
) -> Iterator[tuple[Any, str]]:
    """Put one copy off and take the steps; take one step with `psum`. Measure what comes out."""
    n = len(devices)
    apart, losses = _go_on_off(step, params, batch, rate)
    given = answer["apart"]
    yield (
        n > 1 and given == 0,
        "For that, somebody would have to send the right parameters around. What does `pmap_step` "
        "send?",
    )
    yield (
        n > 1 and _near(given, 1 / n),
        "What is averaged are gradients and losses. The update starts from each device's own copy.",
    )
    yield (
        n > 1 and given > 1.05 * apart,
        "To grow apart, the copies would have to move differently. Whose gradient moves each?",
    )
    yield (
        abs(given - apart) > 0.05,
        "Two copies, each moved by the very same steps: what becomes of their difference?"
        if n > 1
        else "There is one device, so there is one copy: from what could it be apart?",
    )
    yield (
        answer["losses"] == n != losses,
        "Each device computes a loss of its own. But which one does it return?",
    )
    yield answer["losses"] != losses, "How many different numbers can a `pmean` give in one step?"
    times = _times_the_rate(loss_fn, devices, params, batch, rate)
    yield (
        n > 1 and _near(answer["times the rate"], 1 / n),
        "The other way round: is a sum larger or smaller than the mean?",
    )
    yield (
        n > 1 and _near(answer["times the rate"], 1),
        "Then sum and mean would be the same. Over how many devices is the sum?",
    )
    yield not _near(answer["times the rate"], times), "How many times the mean is the sum?"


def _go_on_off(step: Callable, params: Any, batch: Any, rate: float) -> tuple[float, int]:
    """The largest difference between copies, in units of `OFF`, and how many losses differ."""

    def spoil(leaf: jax.Array) -> jax.Array:
        copies = np.array(leaf)
        copies[-1] += OFF
        return jax.device_put(copies, leaf.sharding)

    params = jax.tree.map(spoil, params)
    for _ in range(STEPS):
        params, losses = jax.block_until_ready(step(params, batch, rate))
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(params)]
    most = max(float(np.abs(leaf[0] - leaf[-1]).max()) for leaf in leaves)
    return most / OFF, len(np.unique(np.asarray(losses)))


def _times_the_rate(
    loss_fn: Callable, devices: Sequence[jax.Device], params: Any, batch: Any, rate: float
) -> float:
    """How far a step with `psum` goes, measured by one device's step on the whole batch."""

    def summed(params: Any, batch: Any) -> Any:
        grads = jax.lax.psum(jax.grad(loss_fn)(params, batch), "data")
        return jax.tree.map(lambda p, g: p - rate * g, params, grads)

    new = jax.device_get(jax.pmap(summed, axis_name="data", devices=devices)(params, batch))
    old, new = (jax.tree.map(lambda x: x[0], tree) for tree in (jax.device_get(params), new))
    whole = jax.tree.map(lambda x: x.reshape(-1, x.shape[-1]), jax.device_get(batch))
    grads = jax.jit(jax.grad(loss_fn))(*jax.device_put((old, whole), devices[0]))
    wanted = jax.tree.map(lambda p, g: p - rate * g, old, jax.device_get(grads))
    return along(new, wanted, old)[0]


def _near(a: float, b: float) -> bool:
    return abs(a - b) <= 0.02 * abs(b)
