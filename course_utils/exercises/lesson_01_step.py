"""Exercise 01.1: a training step that isn't pure."""

from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np

from course_utils.exercises.definition import defined
from course_utils.exercises.forms import function


@defined(
    "01.1",
    "Repair a step that isn't pure",
    kind="find the fault",
    trains=("write a training step as a pure function", "get loss and gradients from one pass"),
    form=function("loss_fn", "params", "batch", "rate"),
    hints=(
        "Three things are wrong: what happens to the parameters that were handed in, how often "
        "the model runs, and whose loss is returned.",
        "Section 5 has a function that returns value and gradients of one pass, and one that "
        "builds a new tree from two others.",
    ),
    right="The step is pure, it needs one pass, and it reports the loss of the parameters that "
    "came in. Such a step can be compiled, differentiated and spread over devices.",
)
def pure_step(
    step: Callable, loss_fn: Callable, params: Any, batch: Any
) -> Iterator[tuple[Any, str]]:
    """Run the learner's step once on a copy of the lesson's parameters, and look at all of it."""
    rate, passes = 0.1, []

    def counted(*arguments: Any) -> Any:
        passes.append(1)
        return loss_fn(*arguments)

    handed_in = jax.tree.map(lambda x: x, params)  # new lists and dicts, the same arrays
    result = step(counted, handed_in, batch, rate)
    yield result is None, "Your function returns nothing: return the new parameters and the loss."
    yield (
        not isinstance(result, tuple) or len(result) != 2,
        "Return two things, as `return a, b` does: the new parameters, then the loss.",
    )
    new, loss = result
    yield (
        not _same_arrays(handed_in, params),
        "After your step, the parameters that were handed in are no longer the old ones: "
        "something was changed in place. A caller who still needs them, to compare or to start "
        "again, has lost them.",
    )
    yield (
        jax.tree.map(np.shape, new) != jax.tree.map(np.shape, params),
        "The first thing that you return hasn't the tree and the shapes of the parameters.",
    )
    yield (
        len(jax.tree.leaves(loss)) != 1 or np.shape(jax.tree.leaves(loss)[0]) != (),
        "The loss isn't a single number. `loss_fn` returns loss and accuracy: which is which, "
        "when the accuracy is an extra?",
    )
    yield (
        len(passes) > 1,
        f"The model ran {len(passes)} times. Loss and gradients come out of the same pass.",
    )
    yield from _updates(new, jax.tree.leaves(loss)[0], loss_fn, params, batch, rate)


def _updates(
    new: Any, loss: Any, loss_fn: Callable, params: Any, batch: Any, rate: float
) -> Iterator[tuple[Any, str]]:
    """Compare parameters and loss with those of gradient descent, and with near misses."""
    (before, _), grads = jax.value_and_grad(loss_fn, has_aux=True)(params, batch)

    def moved_by(factor: float) -> bool:
        return _close(new, jax.tree.map(lambda p, g: p + factor * g, params, grads))

    yield moved_by(rate), "The loss grows: this step goes up the gradient, not down."
    yield moved_by(-1.0), "The step has the right direction, but its length ignores `rate`."
    yield _close(new, grads), "These are the gradients. The parameters are still to be updated."
    yield moved_by(0.0), "The parameters come out as they went in: nothing was learnt."
    yield not moved_by(-rate), "The new parameters aren't those of one step down the gradient."
    yield (
        _close(loss, loss_fn(new, batch)[0]),
        "The new parameters are right, but the loss is theirs. Report the loss of the parameters "
        "that came in: it is known before the update, and costs nothing more.",
    )
    yield not _close(loss, before), "The new parameters are right, the loss isn't."


def _same_arrays(a: Any, b: Any) -> bool:
    """Whether two trees hold the very same arrays in the same places."""
    leaves = jax.tree.leaves(a), jax.tree.leaves(b)
    return jax.tree.structure(a) == jax.tree.structure(b) and all(
        x is y for x, y in zip(*leaves, strict=True)
    )


def _close(a: Any, b: Any) -> bool:
    # Eager and jitted steps add in another order; TF32 rounds products at 1e-3.
    pairs = zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True)
    return all(np.allclose(x, y, rtol=1e-3, atol=1e-5) for x, y in pairs)
