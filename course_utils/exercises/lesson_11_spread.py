"""Exercise 11.1: a metric of all examples from what each device can add up."""

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

from course_utils.exercises.definition import defined
from course_utils.exercises.forms import function

ONE_DEVICE = (
    "With one device, right and wrong are the same. Set DEVICES to 2 or more at the top of the "
    "lesson, restart the kernel, and run this again."
)
EACH = 6  # losses on each device


@defined(
    "11.1",
    "Find the spread of losses that lie on several devices",
    kind="fill the gap",
    trains=("turn a metric that is no plain mean", "say what may happen before the reduction"),
    form=function("losses"),
    hints=(
        "The spread is measured from the mean of all losses. Can a device know that mean before "
        "anything was exchanged?",
        "The variance is the mean of the squared distances from the mean, or the mean of the squares "
        "less the square of the mean. Either is made of means over all examples; the root bends, so "
        "it comes last.",
    ),
    right="A device's own spread knows nothing of how far the devices' means lie apart. Two "
    "reductions of plain means do, and the root waits until all is there.",
)
def spread(answer: Callable, mesh: Mesh) -> Iterator[tuple[Any, str]]:
    """Run the learner's function on losses whose means differ from device to device."""
    n = mesh.size
    yield n < 2, ONE_DEVICE
    losses = np.random.default_rng(0).random((n, EACH), np.float32)
    losses += np.arange(n, dtype=np.float32)[:, None]
    returned = _returned(answer, mesh, losses.ravel())
    yield returned is None, "Your function returns nothing: return the spread."
    shape, varying = returned
    yield shape != (), f"A spread is a single number; yours has the shape {shape}."
    yield (
        varying,
        "Every device must return the same, but yours is varying: nothing was exchanged, or something "
        "after it is the device's own again, or, as after `all_gather`, JAX can't tell that all agree.",
    )
    found = float(jax.device_get(_on_mesh(answer, mesh)(losses.ravel())))
    own, whole = losses.std(axis=1), float(losses.std())
    for mistaken, message in (
        (own.mean(), "That is the mean of the devices' own spreads. A root can't be averaged."),
        (own.sum(), "That adds up the devices' own spreads."),
        (
            np.sqrt((own**2).mean()),
            "The squares are averaged now, but each device measures from its own mean. How far those "
            "means lie apart is missing.",
        ),
        (whole**2, "That is the variance: the root is missing."),
        (
            whole * mesh.size**0.5,
            "Too large by the root of the number of devices: something was added up that is a mean.",
        ),
    ):
        yield not _near(found, whole) and _near(found, mistaken), message
    yield not _near(found, whole), "It isn't the spread of all losses together."


def _on_mesh(answer: Callable, mesh: Mesh) -> Callable:
    return jax.jit(jax.shard_map(answer, mesh=mesh, in_specs=P("data"), out_specs=P()))


def _returned(answer: Callable, mesh: Mesh, losses: np.ndarray) -> Any:
    """Shape of what a device returns, and whether it is varying; None if nothing is returned."""
    found = []

    def look(losses: jax.Array) -> jax.Array:
        value = answer(losses)
        varying = "V:data" in str(jax.typeof(value)) if value is not None else False
        found.append(None if value is None else (jnp.shape(value), varying))
        return jax.lax.psum(1, "data")  # whatever came: the same everywhere

    jax.eval_shape(_on_mesh(look, mesh), losses)
    return found[0]


def _near(a: float, b: float) -> bool:
    return bool(abs(a - b) <= 1e-3 * abs(b))
