"""Exercises 03.1 and 03.2: what `vmap` maps over, and a mean over every example."""

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from course_utils.exercises.definition import defined
from course_utils.exercises.forms import function, named, or_none, shape

_SHAPE = or_none(shape())


@defined(
    "03.1",
    "Predict what vmap returns",
    kind="predict",
    trains=("explain `jax.vmap` with an example",),
    form=named({"(None, 0)": _SHAPE, "(0, None)": _SHAPE, "(0, 0)": _SHAPE, "both": _SHAPE}),
    hints=(
        "First say what `logits` returns for one model and one batch. Each `vmap` puts one axis in "
        "front of that: which argument does it come from, and how long is it?",
        "With `(0, 0)` both arguments are walked through in step, as by `zip(..., strict=True)`. In "
        "`both`, the inner `vmap` does its work for each turn of the outer one.",
    ),
    right="Each `vmap` is one loop that you don't write: `None` for what all turns share, a number for "
    "what is walked through, and one axis in the result.",
)
def mapped(
    answer: dict[str, Any], models: int, batches: int, rows: int
) -> Iterator[tuple[Any, str]]:
    """Ask `vmap` itself, by shapes alone."""
    weights = jax.ShapeDtypeStruct((models, 784, 10), jnp.float32)
    stack = jax.ShapeDtypeStruct((batches, rows, 784), jnp.float32)
    one, many_models, many_stacks = (rows, 10), weights.shape[1:], stack.shape[1:]
    for name, function_, arguments in (
        ("(None, 0)", jax.vmap(logits_of, (None, 0)), (_like(many_models), stack)),
        ("(0, None)", jax.vmap(logits_of, (0, None)), (weights, _like(many_stacks))),
        ("(0, 0)", jax.vmap(logits_of, (0, 0)), (weights, stack)),
        ("both", jax.vmap(jax.vmap(logits_of, (None, 0)), (0, None)), (weights, stack)),
    ):
        seen, truth = answer[name], _returned(function_, *arguments)
        yield (
            truth is None and seen is not None,
            f"`{name}` walks through both in step, but one of them ends before the other.",
        )
        yield truth is not None and seen is None, f"`{name}` works: there is a result."
        yield seen != truth and seen == one, f"`{name}`: that is what one call returns, not all."
        yield (
            seen != truth and sorted(seen) == sorted(truth),
            f"`{name}`: these are the right axes in another order. The outermost loop comes first.",
        )
        yield (
            seen != truth and len(seen) != len(truth),
            f"`{name}`: each `vmap` adds one axis, and no other.",
        )
        yield seen != truth, f"`{name}`: over which argument does it loop, and how long is that?"


def logits_of(weights: jax.Array, images: jax.Array) -> jax.Array:
    """What the exercise maps: images (rows, 784) times weights (784, 10)."""
    return images @ weights


def _like(shape: tuple[int, ...]) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def _returned(function: Callable, *arguments: Any) -> tuple[int, ...] | None:
    try:
        return jax.eval_shape(function, *arguments).shape
    except ValueError:  # the mapped axes differ in length
        return None


@defined(
    "03.2",
    "Repair a mean of means",
    kind="find the fault",
    trains=("count every image exactly once", "tell a mean over examples from a mean of means"),
    form=function("score", "images", "batch_size"),
    hints=(
        "`-len(images) % batch_size` rows are missing in the last batch. What do they need so that they "
        "don't count?",
        "Keep two sums, of the scores that count and of how many count, and divide when all batches are "
        "done. `score` gives the empty rows a number, too.",
    ),
    right="One shape for the compiler, each image once, one division. The same three lines evaluate any "
    "data set with any batch size, and on any number of devices.",
)
def average(average: Callable) -> Iterator[tuple[Any, str]]:
    """Let it average numbers that tell which rows went in, and watch the shapes it asks for."""
    shapes: list[tuple[int, ...]] = []

    def score(images: Any) -> jax.Array:
        """One number for each image; for an empty one, 100, which nobody would overlook."""
        shapes.append(np.shape(images))
        total = jnp.sum(images, axis=tuple(range(1, jnp.ndim(images))))
        return jnp.where(total == 0, 100.0, total)

    for count, size in ((12, 4), (10, 4), (3, 4)):
        images = np.arange(1, 2 * count + 1, dtype=np.float32).reshape(count, 2) ** 2
        del shapes[:]
        returned = average(score, images, size)
        yield returned is None, "Your function returns nothing: return the mean."
        yield np.ndim(returned) != 0, "Return one number, the mean over all images."
        found, sums = float(returned), images.sum(axis=1)
        yield not np.isclose(found, sums.mean(), rtol=1e-4), _which(found, sums, size)
        yield not shapes, "`score` was never called: it is what has to be averaged."
        odd = next((seen for seen in shapes if seen[0] != size), None)
        yield (
            odd is not None,
            f"Right, but `score` was given {odd and odd[0]} rows, with a batch size of {size}: that "
            "is a shape of its own, and another program.",
        )


def _which(found: float, sums: np.ndarray, size: int) -> str:
    """The likely mistake behind a mean that is wrong."""
    missing = -len(sums) % size
    padded = np.append(sums, [100.0] * missing)
    starts = range(0, len(sums), size)
    means = [sums[start : start + size].mean() for start in starts]
    whole = sums[: len(sums) // size * size]
    zeros = np.append(sums, [0.0] * missing)
    for mistaken, message in (
        (
            whole.mean() if len(whole) else np.nan,
            "The last images are left out: they fill no batch.",
        ),
        (np.mean(means), "Nearly: a mean of means gives the images of the last batch more weight."),
        (padded.mean(), "The empty rows that fill the last batch have been scored and counted."),
        (zeros.mean(), "The empty rows add nothing, but they are still counted as images."),
        (sums.sum(), "That is the sum of all scores. Divide by the number of images."),
        (padded.sum() / len(sums), "The empty rows don't count, but their scores are in the sum."),
    ):
        if np.isclose(found, mistaken, rtol=1e-4):
            return message
    return f"For {len(sums)} images in batches of {size}, that isn't the mean of their scores."
