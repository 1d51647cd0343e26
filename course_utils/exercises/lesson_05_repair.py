"""Exercise 05.3: repair a step that is wrong by the number of devices."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

from course_utils.equivalence import assert_equal_to_one_device
from course_utils.exercises.definition import defined
from course_utils.exercises.forms import function
from course_utils.exercises.way import along
from course_utils.hlo import collectives, totals

SPECS = (P(), (P("data", None), P("data")))  # parameters whole, images and labels split


@defined(
    "05.3",
    "Repair the step that is wrong by a factor",
    kind="find the fault",
    trains=("repair it in three ways", "write a data-parallel training step"),
    form=function("params", "batch"),
    hints=(
        "Make the gradient each device's own before anything is averaged: of what must it be the "
        "gradient then? Section 1 has the word, and `jax.lax.pcast` turns one kind into the other.",
        "The update has to start from what is the same on all devices, or its result isn't. And "
        "a tree of several things can be averaged in one go.",
    ),
    right="Differentiate with respect to what is this device's own, exchange once, update what is "
    "the same everywhere: that is data parallelism in three lines.",
)
def repaired(
    step: Callable, mesh: Mesh, loss_fn: Callable, params: Any, batch: Any, rate: float
) -> Iterator[tuple[Any, str]]:
    """Run the learner's step on the mesh, compare it with one device, count its collectives."""
    returned = _returned(step, mesh, params, batch)
    yield returned is None, "Your function returns nothing: return new parameters and loss."
    yield (
        not isinstance(returned, tuple) or len(returned) != 2,
        "Return two things, as `return a, b` does: the new parameters, then the loss.",
    )
    shapes = [jax.tree.map(lambda seen: seen.shape, part) for part in returned]
    yield (
        shapes[0] != jax.tree.map(jnp.shape, params),
        "The first thing that you return hasn't the tree and the shapes of the parameters.",
    )
    yield shapes[1] != (), "The loss isn't a single number: `loss_fn` returns loss and accuracy."
    yield (
        any(seen.varying for seen in jax.tree.leaves(returned)),
        "Every device must return the same, but something that you return is varying. Either it was "
        "never exchanged, or it was computed from a value that is varying.",
    )
    yield from _moves(jax.jit(on_mesh(mesh, step)), mesh, loss_fn, params, batch, rate)


def _moves(
    step: Callable, mesh: Mesh, loss_fn: Callable, params: Any, batch: Any, rate: float
) -> Iterator[tuple[Any, str]]:
    """Where the step goes and how far, measured by the way that one device goes."""

    def one_device(params: Any, batch: Any) -> tuple[Any, jax.Array]:
        (loss, _), grads = jax.value_and_grad(loss_fn, has_aux=True)(params, batch)
        return jax.tree.map(lambda p, g: p - rate * g, params, grads), loss

    n, home = mesh.size, mesh.devices.flat[0]
    new, loss = jax.device_get(jax.block_until_ready(step(params, batch)))
    wanted, mean = jax.device_get(jax.jit(one_device)(*jax.device_put((params, batch), home)))
    factor, _ = along(new, wanted, params)
    yield (
        n > 1 and abs(factor - n) < 0.01 * n,
        "The parameters go in the right direction, but as many times too far as there are devices: "
        "the gradients are added up over the devices, and never averaged.",
    )
    yield (
        n > 1 and abs(factor - 1 / n) < 0.01 / n,
        "The parameters go in the right direction, but not far enough, by the number of devices: "
        "the gradients are divided once too often.",
    )
    yield abs(factor) < 1e-3, "The parameters come out as they went in."
    yield factor < 0, "The parameters go up the gradient, not down."
    yield abs(factor - 1) > 0.01, "The parameters don't end where one device would bring them."
    yield (
        not np.allclose(loss, mean, rtol=1e-2),
        "The parameters are right. The loss isn't the mean over the whole batch.",
    )
    sent = totals(collectives(step.lower(params, batch).compile())).executions
    yield (
        n > 1 and sent > 1,
        f"The result is right. But {sent} exchanges are executed where one would do: those that "
        "differentiating brings along stand in the backward loop, and each `pmean` of yours may be "
        "another.",
    )
    yield not _proved(step, one_device, params, batch), "After some more steps, one device differs."


def on_mesh(mesh: Mesh, local: Callable) -> Callable:
    """Run `local(params, batch)` on each device with its share, as section 2 of the lesson does."""
    return jax.shard_map(local, mesh=mesh, in_specs=SPECS, out_specs=P())


@dataclass(frozen=True)
class _Seen:
    """An array that a device's step returns; to JAX's trees, a leaf."""

    shape: tuple[int, ...]
    varying: bool


def _returned(step: Callable, mesh: Mesh, params: Any, batch: Any) -> Any:
    """What a device's step returns, with a `_Seen` for each array."""
    found = []

    def see(x: Any) -> _Seen:
        return _Seen(jnp.shape(x), "V:data" in str(jax.typeof(x)))

    def look(params: Any, batch: Any) -> jax.Array:
        found.append(jax.tree.map(see, step(params, batch)))
        return jax.lax.psum(1, "data")  # whatever came: the same everywhere

    jax.eval_shape(on_mesh(mesh, look), params, batch)
    return found[0]


def _proved(step: Callable, reference: Callable, params: Any, batch: Any) -> bool:
    try:
        return assert_equal_to_one_device(step, params, batch, reference=reference).ok
    except AssertionError:
        return False
