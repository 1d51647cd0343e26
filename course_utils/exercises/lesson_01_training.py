"""Exercises 01.2 to 01.4: what compiles, what the curve says, what an epoch costs."""

from collections.abc import Iterator, Mapping
from typing import Any

import jax

from course_utils.exercises.definition import defined
from course_utils.exercises.forms import choice, named, number, or_none, whole_number


@defined(
    "01.2",
    "Find the second compile",
    kind="find the fault",
    trains=("say when `jax.jit` compiles", "say on which device every array"),
    form=named(
        {
            "steady": whole_number(),
            "falling": whole_number(),
            "uncommitted": choice("params", "trace", "count"),
        }
    ),
    hints=(
        "Print `jax.tree.leaves_with_path(steady.init(params))`, and the same of `falling`. What "
        "does a rate that falls have to know that a steady one doesn't?",
        "Each leaf has an attribute `committed`. A step compiles again when one of its arguments "
        "comes back in another state than it went in.",
    ),
    right="A schedule has to know which step it is, and that number belongs to no device until "
    "you say so. Whatever an optimizer counts is worth this look.",
)
def second_compile(
    answer: dict[str, Any], optimizers: Mapping[str, Any], params: Any, batch: Any
) -> Iterator[tuple[Any, str]]:
    """Count what three steps with each optimizer compile; look for uncommitted leaves."""
    states = {name: optimizer.init(params) for name, optimizer in optimizers.items()}
    leaves = jax.tree.leaves_with_path(states["falling"])
    loose = [jax.tree_util.keystr(path) for path, leaf in leaves if not leaf.committed]
    calls = {name: _compiles(optimizers[name], params, states[name], batch) for name in states}
    truth = {name: sum(counts) for name, counts in calls.items()}
    yield (
        max(answer["steady"], answer["falling"]) >= 3 > max(truth.values()),
        "Not every call compiles: the third finds the program of an earlier one.",
    )
    yield (
        min(answer["steady"], answer["falling"]) < 1,
        "Nothing runs before it is compiled: the first call compiles.",
    )
    yield (
        answer["steady"] > truth["steady"],
        "At a steady rate the optimizer keeps only the momentum, and that is built from the "
        "parameters, which are committed. What should make the second call differ?",
    )
    yield (
        answer["falling"] < truth["falling"],
        "With the falling rate, something in the state comes back committed that went in "
        "uncommitted. To `jit` that is another call.",
    )
    yield (
        answer["uncommitted"] == "params",
        "The parameters went to the device with `jax.device_put`: that is what commits an array.",
    )
    yield (
        not any(answer["uncommitted"] in path for path in loose),
        "That one is made from the parameters, and as committed as they are. Look for a number "
        "that nobody derived from an array on the device.",
    )
    yield (
        {name: answer[name] for name in truth} != truth,
        "Count again: wrap three calls of a step in `count_compiles()`, as in section 6.",
    )


def _compiles(optimizer: Any, params: Any, opt_state: Any, batch: Any) -> list[int]:
    """Programs that each of three calls of a new step compiles."""
    from course_utils.compiles import count_compiles
    from course_utils.models.mlp import loss_and_accuracy, make_train_step

    step, state, counts = make_train_step(loss_and_accuracy, optimizer), (params, opt_state), []
    for _ in range(3):
        with count_compiles() as compiles:
            state, _ = step(state, batch)
        counts.append(compiles.count)
    return counts


@defined(
    "01.3",
    "Read the curve",
    kind="explain the figure",
    trains=("train with an Optax optimizer and read the curve",),
    form=named({"step": or_none(whole_number()), "updates": or_none(whole_number())}),
    hints=(
        "`log` holds the rows of the table: `log[0]['loss']` is the first loss. The rows aren't "
        "one step apart.",
        "Each row was measured by a step on the parameters that it was given. What had happened "
        "to them before the very first row?",
    ),
    right="The first row tells of parameters that have never been updated, and every row of those "
    "that its step was given. An off-by-one here is how two curves end up a step apart.",
)
def curve(answer: dict[str, Any], log: list[dict[str, float]]) -> Iterator[tuple[Any, str]]:
    """Find the first row at or below half the first loss, in the log of this very run."""
    half = log[0]["loss"] / 2
    below = [place for place, row in enumerate(log) if row["loss"] <= half]
    step = log[below[0]]["step"] if below else None
    yield (
        answer["step"] is None and step is not None,
        "There is such a row: the loss does fall to half of what it was at first.",
    )
    yield (
        bool(below) and answer["step"] != step and answer["step"] in (below[0], below[0] + 1),
        "That counts the rows of the table. Its first column says which step a row is.",
    )
    yield (
        answer["step"] in [log[place]["step"] for place in below[1:]],
        "In that row the loss is low enough, but an earlier row is, too.",
    )
    yield answer["step"] != step, "In that row the loss is still above half of the first row's."
    yield (
        step is not None and answer["updates"] == step,
        "A step reports the loss before its own update; that update isn't in it yet.",
    )
    yield (
        answer["updates"] != (step and step - 1),
        "Every step before this one has updated the parameters once, and nothing else has.",
    )


@defined(
    "01.4",
    "Turn examples a second into a bill",
    kind="fill the gap",
    trains=("measure a step's throughput",),
    form=named({"seconds": number("seconds"), "price": number("the currency of the price")}),
    hints=(
        "How many examples are there in all epochs together, and how many does a second take? "
        "Then look for what is paid once, whatever the number of epochs.",
        "`throughput` has `examples_per_s` and `compile_s`. The price is per hour.",
    ),
    right="A throughput without its compilation can be multiplied; the compilation is added once. "
    "That is why the two are measured apart.",
)
def bill(
    answer: dict[str, float], timing: Any, images: int, epochs: int, price_per_hour: float
) -> Iterator[tuple[Any, str]]:
    """Compute the bill from what was measured in this lesson, a moment ago."""
    seconds, price = answer["seconds"], answer["price"]
    one = images / timing.examples_per_s
    work, compiling = epochs * one, timing.compile_s
    right = _near(seconds, work + compiling)
    for mistaken, message in (
        (one, "That is one epoch, compilation aside. There are more of them."),
        (one + compiling, "That is one epoch. There are more of them."),
        (work + epochs * compiling, "The step is compiled once, not in every epoch."),
        (work, "The training itself is right. Something has to be done before the first step."),
        (work * timing.ms_per_step, "That multiplies two times. A time per step takes steps."),
        (1000 * work, "These are milliseconds."),
        (1000 * work + compiling, "That adds milliseconds to seconds."),
        (1 / (work + compiling), "That is upside down: divide examples by examples a second."),
    ):
        yield not right and _near(seconds, mistaken), message
    yield not right, "The seconds aren't those of all examples, compiled once."
    hours = seconds / 3600
    yield _near(price, seconds * price_per_hour), "That price would be per second; it is per hour."
    yield _near(price, hours * 60 * price_per_hour), "That price would be per minute."
    yield not _near(price, hours * price_per_hour), "The price isn't that of so many seconds."


def _near(a: float, b: float) -> bool:
    # Half a percent: whoever counts the images that fill no batch, or rounds, isn't mistaken.
    return abs(a - b) <= 5e-3 * abs(b)
