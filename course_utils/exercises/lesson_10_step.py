"""Exercises 10.1 and 10.2: the work in a step, and a training that is one program."""

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from course_utils.exercises.definition import defined
from course_utils.exercises.forms import function, named, number
from course_utils.jaxprs import inner_jaxprs

COUNT, BATCH, EPOCHS = 26, 4, 5
STEPS = COUNT // BATCH
FACTOR = 31


@defined(
    "10.1",
    "Predict what a step has to do",
    kind="predict",
    trains=("find out where a step's time goes",),
    form=named(
        {
            "forward, MFLOP": number(),
            "step, MFLOP": number(),
            "least ms": number(),
            "part": number(),
        }
    ),
    hints=(
        "Write down the products of one layer: forward, for the gradient of its weights, for the "
        "gradient of its input. All three have as many operations. A product of (m, k) with (k, n) has "
        "m·n sums of k terms, and each term is a multiplication and an addition.",
        "Whose input does nobody want to change? Leave out the product that would say how. Operations "
        "divided by operations per second are seconds.",
    ),
    right="So that is what the machine must do, and how well it does it. A part is honest across sizes, "
    "optimizers and machines, where milliseconds aren't.",
)
def work_of_a_step(
    answer: dict[str, Any], sizes: list[int], batch: int, gflops: float, ms: float
) -> Iterator[tuple[Any, str]]:
    """Count the products in the traced programs of the network with these sizes."""
    forward, step = _mflop(sizes, batch)
    given = answer["forward, MFLOP"]
    yield _near(2 * given, forward), "Forward: a multiplication and an addition are two operations."
    yield _near(given * batch, forward), "Forward: that is one image. A batch has more of them."
    yield _near(given / 1e6, forward), "Forward: in millions of operations, please."
    yield not _near(given, forward), "Forward: one product for each layer, images times weights."
    given = answer["step, MFLOP"]
    yield (
        _near(given, forward),
        "Step: it goes backward, too, through the same layers with products of the same size.",
    )
    yield (
        _near(given, 2 * forward),
        "Step: backward, a layer has more to answer than one question.",
    )
    yield (
        _near(given, 3 * forward),
        "Nearly: one of these products has a result that nobody reads, and it isn't the smallest.",
    )
    yield (
        not _near(given, step),
        "Step: add up the products that the gradients of the weights need.",
    )
    given, least = answer["least ms"], step / gflops
    yield _near(given * 1000, least), "Least: that is in seconds."
    yield not _near(given, least), "Least: the operations of the whole step, at the rate given."
    given, part = answer["part"], least / ms
    yield _near(given, 1 / part), "Part: that is how many times too long; a part is below 1."
    yield _near(given, 1 - part), "Part: that is what could be saved, all that isn't a product."
    yield _near(given, 100 * part), "Part: as a part of 1, please."
    yield not _near(given, part), "Part: the least time over the measured one."


def _mflop(sizes: list[int], batch: int) -> tuple[float, float]:
    """Millions of operations in the products of the forward pass, and of the gradients' program."""
    from course_utils.flops import matmul_flops
    from course_utils.models.mlp import init_params, loss_and_accuracy, predict

    params = jax.eval_shape(lambda: init_params(jax.random.key(0), sizes))
    images = jax.ShapeDtypeStruct((batch, sizes[0]), jnp.float32)
    labels = jax.ShapeDtypeStruct((batch,), jnp.int32)
    gradients = jax.value_and_grad(loss_and_accuracy, has_aux=True)
    return (
        matmul_flops(predict, params, images) / 1e6,
        matmul_flops(gradients, params, (images, labels)) / 1e6,
    )


def _near(a: float, b: float) -> bool:
    return bool(np.isclose(a, b, rtol=1e-2, atol=0))


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
