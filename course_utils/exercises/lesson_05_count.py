"""Exercise 05.4: how many all-reduces run, and which of them the loop multiplies."""

from collections.abc import Callable, Iterator
from typing import Any

import jax
from jax.sharding import Mesh

from course_utils.exercises.definition import defined
from course_utils.exercises.forms import named, whole_number
from course_utils.exercises.lesson_05_repair import on_mesh
from course_utils.hlo import collectives, totals


@defined(
    "05.4",
    "Say how many all-reduces run, and check with the counter",
    kind="explain the figure",
    trains=("repair it in three ways, and say what each costs",),
    form=named(
        {
            "looks right": whole_number(),
            "varying first": whole_number(),
            "mean loss first": whole_number(),
        }
    ),
    hints=(
        "The block's weights are used once in each repetition, the other weights once in all. Where "
        "in the backward pass is each of their gradients exchanged?",
        "Take the numbers of the table apart: which part of each comes from the loop?",
    ),
    right="What stands in the loop is multiplied by the loop; what comes after it is not. Whatever "
    "a model looks like, that decides what a step sends.",
)
def doubled(
    answer: dict[str, int], mesh: Mesh, params: Any, batch: Any, repeats: int, make_loss: Callable
) -> Iterator[tuple[Any, str]]:
    """Compile the three ways with twice the repeats, count what they execute; ask why if wrong."""
    twice = _counts(mesh, make_loss(2 * repeats), params, batch)
    yield (
        answer["varying first"] != twice["varying first"],
        "A gradient that stays the device's own through the whole backward pass is exchanged after "
        "it. What of that depends on the number of repetitions?",
    )
    if answer == twice:
        return
    once = _counts(mesh, make_loss(repeats), params, batch)
    for way in ("looks right", "mean loss first"):
        given, truth = answer[way], twice[way]
        yield (
            given != truth and given == once[way],
            f"{way!r}: nothing has changed in your number, but its exchange of the block's gradient "
            "stands in the loop, and the loop is longer.",
        )
        yield (
            given != truth and given == 2 * once[way],
            f"{way!r}: you have doubled all. Some exchanges are outside the loop.",
        )
        yield given != truth, f"{way!r}: count those in the loop and those outside it apart."


def _counts(mesh: Mesh, loss_fn: Callable, params: Any, batch: Any) -> dict[str, int]:
    """All-reduces that one call executes, for each way of this lesson to the gradient."""

    def own(params: Any, batch: Any) -> Any:
        return jax.grad(loss_fn, has_aux=True)(params, batch)[0]

    def mean_loss(params: Any, batch: Any) -> jax.Array:
        return jax.lax.pmean(loss_fn(params, batch)[0], "data")

    def varying_first(params: Any, batch: Any) -> Any:
        return jax.lax.pmean(own(jax.lax.pcast(params, "data", to="varying"), batch), "data")

    ways = {
        "looks right": lambda p, b: jax.lax.pmean(own(p, b), "data"),
        "varying first": varying_first,
        "mean loss first": jax.grad(mean_loss),
    }
    programs = {
        k: jax.jit(on_mesh(mesh, f)).lower(params, batch).compile() for k, f in ways.items()
    }
    return {name: totals(collectives(program)).executions for name, program in programs.items()}
