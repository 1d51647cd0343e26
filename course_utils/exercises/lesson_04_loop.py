"""Exercises 04.3 and 04.4: how many all-reduces run, and how to send once for many batches."""

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from course_utils.exercises.definition import defined
from course_utils.exercises.forms import function, named, whole_number
from course_utils.exercises.way import along
from course_utils.hlo import Totals, collectives, totals


@defined(
    "04.3",
    "Say how many all-reduces run, and check with the counter",
    kind="explain the figure",
    trains=("count the collectives that a step executes",),
    form=named(
        {
            "for each repetition": whole_number(),
            "executed": whole_number(),
            "bytes": whole_number(),
        }
    ),
    hints=(
        "The table has the counts of two numbers of repetitions. What was added between them, and by "
        "how many repetitions?",
        "`by_case['this run'].executions` and `.bytes` are the exact numbers, and a straight line "
        "goes through two points. Some collectives stand outside the loop.",
    ),
    right="Two counts tell what a loop multiplies and what it doesn't; the third is a proof. Do it "
    "before renting eight GPUs for a thousand repetitions.",
)
def thrice(
    answer: dict[str, int], repeats: int, count: Callable[[int], Totals]
) -> Iterator[tuple[Any, str]]:
    """Compile with three times the repetitions and count; ask two smaller counts why, if wrong."""
    truth = count(3 * repeats)
    once, twice = count(repeats), count(2 * repeats)
    inside = (twice.executions - once.executions) // repeats
    given = answer["for each repetition"]
    yield (
        given != inside and given == twice.executions - once.executions,
        "That many come with all the repetitions that were added. And with one of them?",
    )
    yield (
        given > inside == 0,
        "The number didn't grow with the repetitions: nothing is sent in the loop here.",
    )
    yield given < inside, "The number grows with the repetitions: something is sent in the loop."
    yield given != inside, "Divide what was added by the number of repetitions that were added."
    for name, found in (("executed", "executions"), ("bytes", "bytes")):
        value, (one, two, three) = answer[name], (getattr(x, found) for x in (once, twice, truth))
        yield (
            value != three and value == 3 * one,
            f"Under {name!r} all is multiplied by 3. What stands outside the loop is not.",
        )
        yield (
            value != three and value in (one, two),
            f"Under {name!r}: that is the number for fewer repetitions, but the loop is longer.",
        )
        yield value != three, f"Under {name!r}: continue the table by one more step of its kind."


@defined(
    "04.4",
    "Send once for many batches",
    kind="find the fault",
    trains=("run an unchanged training step on sharded arrays", "find an all-reduce inside a loop"),
    form=function("params", "stack"),
    hints=(
        "The running sum is replicated, so every term must be complete before it is added. What if "
        "there were a running sum for each device?",
        "Give the rows of each batch an axis of devices, behind the axis of batches, and the sums one "
        "in front. `jax.vmap` over the devices' rows and `jax.lax.with_sharding_constraint` do what "
        "they did in section 8; the mean over devices comes after the loop.",
    ),
    right="Adding up gradients over several batches saves memory; where the sum isn't kept apart on "
    "every device, it also pays for the wires once per batch. Now it is paid once.",
)
def frugal(
    gradients: Callable, mesh: Mesh, loss_fn: Callable, params: Any, stack: Any
) -> Iterator[tuple[Any, str]]:
    """Compare with one device, leaf by leaf and by factor; then count the bytes it sends."""
    returned = jax.eval_shape(gradients, params, stack)
    yield returned is None, "Your function returns nothing: return the mean gradient."
    shapes, wanted_shapes = (jax.tree.map(jnp.shape, tree) for tree in (returned, params))
    yield (
        shapes != wanted_shapes,
        "What you return hasn't the tree and the shapes of the parameters. Is an axis of devices or "
        "batches still there?",
    )
    compiled = jax.jit(gradients).lower(params, stack).compile()
    found = jax.device_get(jax.block_until_ready(compiled(params, stack)))
    yield from _differs(found, _on_one_device(mesh, loss_fn, params, stack), mesh, stack)
    sent = totals(collectives(compiled)).bytes
    size = sum(leaf.nbytes for leaf in jax.tree.leaves(params))
    yield (
        mesh.size > 1 and sent > 1.5 * size,
        f"The gradient is right, but {sent / size:.0f} times its bytes are sent: something is still "
        "completed over the devices inside a loop.",
    )


def _differs(found: Any, wanted: Any, mesh: Mesh, stack: Any) -> Iterator[tuple[Any, str]]:
    n, batches = mesh.size, len(stack[0])
    zero = jax.tree.map(np.zeros_like, wanted)
    factor, cosine = along(found, wanted, zero)
    yield (
        batches > 1 and abs(factor / batches - 1) < 0.01,
        "It has the right direction, but is as many times too long as there are batches: that is "
        "their sum.",
    )
    yield (
        n > 1 and abs(factor / n - 1) < 0.01,
        "It has the right direction, but is as many times too long as there are devices.",
    )
    yield n > 1 and abs(factor * n - 1) < 0.01, "It is divided by the number of devices too often."
    # TF32 rounds each product to about 1e-3; a batch left out is off by far more than a percent.
    yield (
        abs(factor - 1) > 0.01 or cosine < 0.999,
        "That isn't the mean gradient over all images of the stack. Does every device's row of every "
        "batch go into it, once?",
    )


def _on_one_device(mesh: Mesh, loss_fn: Callable, params: Any, stack: Any) -> Any:
    """The mean gradient over the stack, one batch after the other, on one device."""

    @jax.jit
    def mean(params: Any, stack: Any) -> Any:
        each = jax.lax.map(lambda batch: jax.grad(loss_fn, has_aux=True)(params, batch)[0], stack)
        return jax.tree.map(lambda g: g.mean(axis=0), each)

    whole = jax.device_get((params, stack))
    return jax.device_get(mean(*jax.device_put(whole, mesh.devices.flat[0])))
