"""Exercises 02.1 and 02.3: what bfloat16 drops, and which values of a training step have lost it."""

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import optax

from course_utils.exercises.definition import defined
from course_utils.exercises.forms import choice, named, number


@defined(
    "02.1",
    "Predict what small changes do",
    kind="predict",
    trains=("say what bfloat16 keeps", "show why parameters, loss"),
    form=named(
        {
            "gap above 256": number(),
            "updated": number(),
            "summed": number(),
            "1e30 is too large for": choice("bfloat16", "float16", "both", "neither"),
        }
    ),
    hints=(
        "From one power of two to the next there are as many steps, all of one length: *eps* times the "
        "lower of the two. Which step lies above 256?",
        "After one of many equal changes, look: has the value moved at all? If not, what do the other "
        "999 do? As for 1e30, the table tells the largest number of each dtype.",
    ),
    right="A thousand small updates in bfloat16 are worth as much as none, and no error says so. In "
    "float32 they add up. That is why the parameters stay there.",
)
def small_changes(answer: dict[str, Any]) -> Iterator[tuple[Any, str]]:
    """Do it: a thousand times, in bfloat16 itself."""
    gap = float(jnp.nextafter(jnp.bfloat16(256), jnp.bfloat16(300))) - 256
    eps, given = float(jnp.finfo(jnp.bfloat16).eps), answer["gap above 256"]
    yield given == eps, "That is the step above 1. Above 256 the numbers lie further apart."
    yield (
        given == gap / 2,
        "That change is lost, as the table above shows: the next is further away.",
    )
    yield given != gap, "The step grows with the power of two: how many times 1 is 256?"
    updated, summed = _a_thousand_times()
    yield (
        updated != answer["updated"] and abs(answer["updated"]) < 0.01,
        "So it would be without rounding. Begin with the first update alone: where does it lead?",
    )
    yield (
        updated != answer["updated"],
        "Every update begins where the last one has led: what is left of the first one?",
    )
    yield (
        summed != answer["summed"] == 1000,
        "So it would be without rounding. The table above shows where such a count ends.",
    )
    yield summed != answer["summed"], "At which count does adding a single one stop to matter?"
    yield (
        answer["1e30 is too large for"] != _too_large(1e30),
        ("Which of the two has float32's exponent, and so its range?"),
    )


def _a_thousand_times() -> tuple[float, float]:
    """What 1 is after 1000 updates of -0.001, and 1000 ones added up, in bfloat16."""

    def step(_: int, values: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        weight, count = values
        return weight - jnp.bfloat16(0.001), count + jnp.bfloat16(1)

    start = (jnp.bfloat16(1), jnp.bfloat16(0))
    weight, count = jax.jit(lambda: jax.lax.fori_loop(0, 1000, step, start))()
    return float(weight), float(count)


def _too_large(value: float) -> str:
    lost = [name for name in ("bfloat16", "float16") if float(jnp.finfo(name).max) < value]
    return {0: "neither", 1: lost[0] if lost else "", 2: "both"}[len(lost)]


_FITS = choice("all fit", "some don't")


@defined(
    "02.3",
    "Say which values still fit bfloat16",
    kind="predict",
    trains=("show that the gradients are float32",),
    form=named(
        {
            "dtype of a gradient": choice("float32", "bfloat16"),
            "one batch": _FITS,
            "mean of two batches": _FITS,
            "momentum": _FITS,
            "new parameters": _FITS,
        }
    ),
    hints=(
        "A value fits if bfloat16 has it, whatever the dtype that it is kept in. What makes new values "
        "here, a product inside a layer or arithmetic after the backward pass?",
        "`survives_bfloat16` from section 4 answers for any array: try it on half of a sum of two "
        "gradients, and on a tenth of one.",
    ),
    right="The rounding comes once, from the layers. What is computed of the gradients afterwards uses "
    "all bits of float32; cast it to bfloat16, and it is lost after all.",
)
def fitting(
    answer: dict[str, str], gradients: Callable, params: Any, batches: list[Any]
) -> Iterator[tuple[Any, str]]:
    """Compute them and ask of every value."""
    first, second = (gradients(params, batch, "bfloat16") for batch in batches[:2])
    optimizer = optax.adamw(3e-3, weight_decay=1e-4)
    updates, state = optimizer.update(first, optimizer.init(params), params)
    dtypes = {str(leaf.dtype) for leaf in jax.tree.leaves(first)}
    yield (
        {answer["dtype of a gradient"]} != dtypes,
        "Differentiating a cast casts back: a gradient has the dtype of what it belongs to.",
    )
    truth = {
        "one batch": first,
        "mean of two batches": jax.tree.map(lambda a, b: (a + b) / 2, first, second),
        "momentum": optax.tree.get(state, "mu"),
        "new parameters": optax.apply_updates(params, updates),
    }
    for name, message in (
        ("one batch", "The products that made this gradient were rounded to bfloat16."),
        ("mean of two batches", "Two numbers of 8 bits may have a sum of 20: is it rounded again?"),
        ("momentum", "The momentum is a tenth of the gradient, and 0.1 in which dtype?"),
        ("new parameters", "They were drawn in float32, and a small step was added in float32."),
    ):
        yield answer[name] != _fits(truth[name]), f"{name!r}: {message}"


def _fits(tree: Any) -> str:
    leaves = jax.tree.leaves(tree)
    same = [bool((x.astype(jnp.bfloat16).astype(x.dtype) == x).all()) for x in leaves]
    return "all fit" if all(same) else "some don't"
