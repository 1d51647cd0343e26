"""Exercise 10.2: a training that is one program."""

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from course_utils.exercises.definition import defined
from course_utils.exercises.forms import function
from course_utils.jaxprs import inner_jaxprs

COUNT, BATCH, EPOCHS = 26, 4, 5
STEPS = COUNT // BATCH
FACTOR = 31


@defined(
    "10.2",
    "Make all epochs one program",
    kind="fill the gap",
    trains=("write a whole epoch as one compiled program",),
    form=function("update", "state", "key", "count", "batch_size", "epochs"),
    hints=(
        "An epoch is a function of a state and a key. What has one state and a whole row of keys, and "
        "wants to hand them over one by one?",
        "`jax.random.split(key, epochs)` is the row. The function that gets one of them draws an order "
        "with `shuffled_rows` and is a `scan` itself.",
    ),
    right="A loop within a loop, and one program for both: the whole training starts with one call. "
    "What it gives up is a look between epochs.",
)
def train_epochs(train: Callable) -> Iterator[tuple[Any, str]]:
    """Trace and run it with an update that notes its rows and mixes them into its state, in order."""
    traced = []

    def update(state: Any, rows: Any) -> tuple[Any, Any]:
        """One step: the state depends on every row of every step, and on their order."""
        traced.append(jnp.shape(rows))
        return _mixed(state, rows), {"rows": rows}

    run = jax.jit(lambda state, key: train(update, state, key, COUNT, BATCH, EPOCHS))
    copies = _scans(jax.make_jaxpr(run)(jnp.uint32(1), jax.random.key(0)).jaxpr)
    returned = run(jnp.uint32(1), jax.random.key(0))
    yield returned is None, "Your function returns nothing: return the state and the metrics."
    yield (
        not isinstance(returned, tuple) or len(returned) != 2,
        "Return two things, as `scan` does: the state after the last step, and the metrics.",
    )
    yield not traced, "`update` was never called: it is what makes a step."
    yield (
        max(copies, len(traced)) >= EPOCHS,
        "A Python loop is written out in the program, once for each of its turns. For many epochs that "
        "never finishes compiling.",
    )
    state, metrics = jax.device_get(returned)
    rows = metrics.get("rows") if isinstance(metrics, dict) else None
    yield rows is None, "The metrics are what `update` gives out, stacked."
    yield (
        np.shape(rows) != (EPOCHS, STEPS, BATCH),
        f"Metrics of {EPOCHS} epochs of {STEPS} steps have these as their first two axes; yours have "
        f"shape {np.shape(rows)}, with rows of {BATCH}.",
    )
    epochs = np.asarray(rows).reshape(EPOCHS, -1)
    yield any(len(set(e.tolist())) < e.size for e in epochs), "An image comes twice in one epoch."
    yield (
        (epochs == epochs[0]).all(),
        "Every epoch has the same order. Where does its key come from?",
    )
    _, others = jax.device_get(run(jnp.uint32(1), jax.random.key(1)))
    yield (rows == others["rows"]).all(), "Another key gives the same orders: it isn't used."
    yield (
        state == _after(np.uint32(1), rows[-1]),
        "Only the last epoch is left in the state: each one starts from where the first did.",
    )
    yield (
        state == _after(np.uint32(1), rows[0]),
        "Only the first epoch is in the state that you return.",
    )
    yield (
        state != _after(np.uint32(1), rows.reshape(-1, BATCH)),
        "These steps end in another state.",
    )


def _scans(jaxpr: Any) -> int:
    """How many loops stand in a program, each written down once however often it turns."""
    return sum(
        (equation.primitive.name == "scan") + sum(map(_scans, inner_jaxprs(equation.params)))
        for equation in jaxpr.eqns
    )


def _mixed(state: Any, rows: Any) -> Any:
    """A state, uint32, that tells which rows came, and when."""
    places = jnp.arange(1, rows.size + 1, dtype=jnp.uint32)
    return state * jnp.uint32(FACTOR) + jnp.sum(rows.astype(jnp.uint32) * places, dtype=jnp.uint32)


def _after(state: np.uint32, steps: np.ndarray) -> int:
    for rows in steps:
        state = _mixed(state, jnp.asarray(rows))
    return int(state)
