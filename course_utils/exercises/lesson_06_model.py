"""Exercises 06.3 and 06.4: test a fit on what it hasn't seen, and predict with it."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from course_utils.exercises.definition import defined
from course_utils.exercises.forms import choice, function, named, number


@defined(
    "06.3",
    "Test the fit on each size in turn",
    kind="fill the gap",
    trains=("fit overhead, rate and link",),
    form=function("runs", "batch"),
    hints=(
        "`runs` maps each batch size to its figures. `fit` takes a list of figures, `predict_ms` the "
        "model and the figures of one run.",
        "Which of the runs may `fit` see, if the one of this batch is to be a test? The error is "
        "relative: 0.1 if the model expects a tenth more than the clock said.",
    ),
    right="Each size was predicted by a model that hasn't seen it. Where the errors are large at the "
    "ends of the sweep and small in between, the model interpolates, and doesn't know why.",
)
def left_out(
    error_of: Callable, runs: Mapping[int, Any], fit: Callable, predict_ms: Callable
) -> Iterator[tuple[Any, str]]:
    """Leave each size out, fit the others, compare; look for the ways that people miss it."""
    for batch, figures in runs.items():
        given = error_of(runs, batch)
        yield given is None, "Your function returns nothing: return the relative error."
        others = [f for b, f in runs.items() if b != batch]
        expected, measured = predict_ms(fit(others), figures), figures["ms"]
        error, seen = expected / measured - 1, predict_ms(fit(list(runs.values())), figures)
        wrong = not _near(given, error)
        for mistaken, message in (
            (seen / measured - 1, "The fit has seen the size that it is to predict."),
            (
                expected - measured,
                "That is a difference in ms. How large is it beside the measured?",
            ),
            (expected / measured, "That is the ratio. An error is 0 where the model is right."),
            (
                1 - expected / measured,
                "The sign is the other way round: too slow a model is above 0.",
            ),
            (
                measured / expected - 1,
                "Measured over predicted: the measured one is the yardstick.",
            ),
            (100 * error, "Give the error as a part of 1, not in percent."),
        ):
            yield wrong and _near(given, mistaken), message
        yield wrong, f"For batch {batch}, that isn't how far off a model without it is."


def _near(a: float, b: float) -> bool:
    return abs(a - b) <= 1e-6 + 1e-3 * abs(b)


@defined(
    "06.4",
    "Predict a step you can't afford to run",
    kind="predict",
    trains=("find the knee of a throughput curve", "tell weak from strong scaling"),
    form=named(
        {
            "one device ms": number("milliseconds"),
            "many devices ms": number("milliseconds"),
            "weak efficiency": number(),
            "knee": number("examples"),
            "limits below the knee": choice("overhead", "rate", "link"),
            "limits above the knee": choice("overhead", "rate", "link"),
        }
    ),
    hints=(
        "*t = overhead + work / rate + bytes / link*: one device sends nothing, and each of many does "
        "the work of its own examples. All units are seconds, operations and bytes.",
        "Examples a second are batch / t. They never exceed what the rate alone allows; 90 % of that is "
        "reached where the overhead is the tenth part of t.",
    ),
    right="Two of the three terms don't grow with the batch: they are what a larger one is spread "
    "over. That is the knee, and it is why weak scaling flatters.",
)
def predicted(
    answer: dict[str, Any], machine: Mapping[str, float], step: Mapping[str, float], devices: int
) -> Iterator[tuple[Any, str]]:
    """Evaluate the three terms with the figures that the cell gives."""
    work = step["examples per device"] * step["operations per example"] / machine["operations/s"]
    overhead, sending = machine["overhead s"], step["bytes"] / machine["bytes/s"]
    one, many = 1000 * (overhead + work), 1000 * (overhead + work + sending)
    yield _close(answer["one device ms"], one / 1000), "Those are seconds; give milliseconds."
    yield _close(answer["one device ms"], many), "One device has nobody to send anything to."
    yield _close(answer["one device ms"], 1000 * work), "The work alone; a step has a fixed cost."
    yield not _close(answer["one device ms"], one), "One device: add its fixed cost and its work."
    yield (
        _close(answer["many devices ms"], 1000 * (overhead + work / devices + sending)),
        "Each of the devices has as many examples as the one had; nobody's work is shared.",
    )
    yield (
        _close(answer["many devices ms"], one),
        "Many devices have gradients to exchange: a third term.",
    )
    yield (
        not _close(answer["many devices ms"], many),
        "Many devices: the step of one, and what it takes to send the bytes.",
    )
    efficiency = answer["weak efficiency"]
    yield _close(efficiency, 100 * one / many), "Give the efficiency as a part of 1."
    yield _close(efficiency, many / one), "No device does more than all of its work: upside down."
    yield (
        _close(efficiency, one / many / devices),
        "Throughput has already grown by the number of devices; you divide by it twice.",
    )
    yield (
        not _close(efficiency, one / many),
        "So many devices do so many times the work, in a longer step. What part of the gain is left?",
    )
    yield from _knee(answer, machine, step)


def _knee(
    answer: dict[str, Any], machine: Mapping[str, float], step: Mapping[str, float]
) -> Iterator[tuple[Any, str]]:
    """The batch at which one device reaches 90% of what its rate alone would allow."""
    even = machine["overhead s"] * machine["operations/s"] / step["operations per example"]
    yield (
        _close(answer["knee"], even),
        "There, work and overhead take as long as each other: that is half of the best throughput.",
    )
    yield (
        _close(answer["knee"], 10 * even),
        "Nearly: the overhead is a tenth of the whole step there, not of the work.",
    )
    yield not _close(answer["knee"], 9 * even), "At the knee, what part of the step is overhead?"
    for side, truth, message in (
        (
            "below",
            "overhead",
            "Below the knee, a step takes nearly the same time whatever its batch.",
        ),
        ("above", "rate", "Above the knee, twice the batch takes twice the time on one device."),
    ):
        yield answer[f"limits {side} the knee"] != truth, f"{message} Which term does that?"


def _close(a: float, b: float) -> bool:
    return abs(a - b) <= 0.01 * abs(b)
