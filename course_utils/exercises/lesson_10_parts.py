"""Exercise 10.3: what a schedule, smoothed labels and an average do, in numbers."""

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from course_utils.exercises.definition import defined
from course_utils.exercises.forms import choice, named, number, or_none

CURES = ("a falling rate", "weight decay", "momentum")


@defined(
    "10.3",
    "Predict what each part does",
    kind="predict",
    trains=("build a learning-rate schedule, label smoothing and averaged parameters",),
    form=named(
        {
            "linear, halfway": number(),
            "exponential, halfway": number(),
            "target of the true class": number(),
            "best lead": or_none(number()),
            "share of the last twenty": number(),
            "also against trembling": choice(*CURES),
        }
    ),
    hints=(
        "By which factor does the exponential schedule fall on its whole way, and what is half of that "
        "way, if two halves, one after the other, make the whole? Ten classes share what smoothing "
        "takes, the true one among them.",
        "The loss is smallest where `softmax` gives exactly the targets, so the lead is the logarithm of "
        "a quotient. Of the average, a step keeps the decay's part of everything older: count how often "
        "in twenty steps.",
    ),
    right="None of them is a spell: each is a number that can be worked out before the first run.",
)
def parts(
    answer: dict[str, Any], make_schedule: Callable, steps: int, smoothing: float, decay: float
) -> Iterator[tuple[Any, str]]:
    """Ask the lesson's schedules, Optax, and a small noisy problem."""
    linear, exponential = (
        _halfway(make_schedule, kind, steps) for kind in ("linear", "exponential")
    )
    given = answer["linear, halfway"]
    yield not _near(given, linear, 0.03), "Linear: in a straight line from the peak down to zero."
    given = answer["exponential, halfway"]
    yield (
        _near(given, 0.5, 0.02),
        "Exponential: that would be a straight line. Here equal times bring equal factors.",
    )
    yield (
        _near(given, 0.01, 0.002),
        "Exponential: that is the end of the way, not half of it.",
    )
    yield (
        not _near(given, exponential, 0.1 * exponential),
        "Exponential: half of the way twice is the whole, so its factor times itself is the whole one.",
    )
    targets = np.asarray(optax.smooth_labels(jnp.eye(10)[0], smoothing))
    given = answer["target of the true class"]
    yield (
        _near(given, 1 - smoothing, 1e-4),
        "Target: nearly. What is taken away is shared by all ten classes.",
    )
    yield (
        not _near(given, targets[0], 1e-3),
        "Target: a little less than 1, by the smoothing's share.",
    )
    given, lead = answer["best lead"], float(np.log(targets[0] / targets[1]))
    yield given is None, "Best lead: the table above has a smallest loss, so there is one."
    yield (
        not _near(given, lead, 0.1),
        "Best lead: where `softmax` of the logits is the targets. Which difference of two logits makes "
        "their quotient?",
    )
    given, share = answer["share of the last twenty"], _share_of_the_last(20, decay)
    yield (
        _near(given, 1, 1e-3),
        "Share: older parameters count less and less, but they still count.",
    )
    yield _near(given, 1 - share, 0.01), "Share: that is what all the older ones have together."
    yield _near(given, 1 - decay, 1e-3), "Share: that is the last step alone."
    yield (
        not _near(given, share, 0.01),
        "Share: begin with what everything older than that has left.",
    )
    left = _left_trembling()
    yield (
        answer["also against trembling"] != min(left, key=left.get),
        "Trembling: that changes where the parameters are pulled, or how long a pull lasts. What makes "
        "each pull smaller, until none is left?",
    )


def _near(given: float, truth: float, within: float) -> bool:
    return abs(given - truth) <= within


def _halfway(make_schedule: Callable, kind: str, steps: int) -> float:
    """The rate in the middle between the end of the warm-up and the last step, over the peak."""
    middle = (max(1, steps // 10) + steps) / 2
    return float(make_schedule(kind, 1.0, steps)(middle))


def _share_of_the_last(steps: int, decay: float) -> float:
    """How much of a running average comes from its last steps: one that was 0 before, 1 since."""
    average = jnp.zeros(())
    for _ in range(steps):
        average = optax.incremental_update(jnp.ones(()), average, 1 - decay)
    return float(average)


def _left_trembling(steps: int = 300) -> dict[str, float]:
    """Mean squared distance that noisy gradients leave from the best place, by cure; 256 runs."""
    cures = {
        "a falling rate": optax.sgd(optax.linear_schedule(0.3, 0.0, steps)),
        "weight decay": optax.chain(optax.add_decayed_weights(0.1), optax.sgd(0.3)),
        "momentum": optax.sgd(0.3, momentum=0.9),
    }

    def distance(optimizer: optax.GradientTransformation, key: jax.Array) -> jax.Array:
        def step(state: Any, noise: jax.Array) -> tuple[Any, None]:
            place, memory = state
            updates, memory = optimizer.update(place - 1 + noise, memory, place)
            return (optax.apply_updates(place, updates), memory), None

        start = jnp.zeros(())
        (place, _), _ = jax.lax.scan(
            step, (start, optimizer.init(start)), jax.random.normal(key, (steps,))
        )
        return (place - 1) ** 2

    keys = jax.random.split(jax.random.key(0), 256)
    return {
        name: float(jax.vmap(lambda key, one=one: distance(one, key))(keys).mean())
        for name, one in cures.items()
    }
