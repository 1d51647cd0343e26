"""Exercises 11.2 and 11.3: gradients that are summed, and gradients that are means of means."""

import functools
from collections.abc import Callable, Iterator
from typing import Any

import jax

from course_utils.equivalence import Report
from course_utils.exercises.definition import defined
from course_utils.exercises.forms import function
from course_utils.exercises.lesson_11_spread import ONE_DEVICE

Prove = Callable[[Callable], Report]


class Mistake(Exception):
    """What a learner's function returned instead of loss and gradients, in words."""


@defined(
    "11.2",
    "Find out why the gradient norm looks odd",
    kind="find the fault",
    trains=("read a report, name the cause", "make a step that you haven't seen"),
    form=function("params", "batch", "key"),
    hints=(
        "Read the report's factor, and look for the lines in which anything crosses between the "
        "devices. What should each of them make of the devices' values?",
        "Each device has the gradient of the mean over its own share. The shares are equally large.",
    ),
    right="AdamW divides a gradient by its own size, so only the moments and the norm could tell. "
    "The next optimizer that doesn't would have trained with a rate that many times too large.",
)
def summed(answer: Callable, prove: Prove) -> Iterator[tuple[Any, str]]:
    """Prove AdamW steps with the learner's gradients, and look at the factor of their norm."""
    report, mistake = _proved(answer, prove)
    yield mistake, mistake
    n, factor = report.devices, _factor(report, "gradient norm")
    yield n < 2, ONE_DEVICE
    yield (
        _near(factor, n),
        "The gradients are still as many times too large as there are devices: what all devices "
        "have is added up, by your line or before it, and never divided.",
    )
    yield (
        _near(factor, 1 / n),
        "Now they are too small by the number of devices: they are divided once too often.",
    )
    yield (
        _differs(report, "loss") and not _differs(report, "gradient norm"),
        "The gradients are right. The loss that you return isn't the mean over all examples.",
    )
    yield not report.ok, f"Not yet what one device has. The report says: {report.suggestion}"


@defined(
    "11.3",
    "Find out what is wrong with a mean of masked means",
    kind="find the fault",
    trains=("read a report, name the cause", "give each example its own random numbers"),
    form=function("params", "batch", "key"),
    hints=(
        "The devices hold different numbers of real examples. How much does an example count on a "
        "device with few of them, and how much on one with many?",
        "Look at the picture of the order of a step. What can a device compute without knowing how "
        "many real examples the others have?",
    ),
    right="Sums and counts add up, whatever the shares are; a mean doesn't know how many it stands "
    "for. Where a device has no real example, its sum and its count are zero, and all is well.",
)
def mean_of_means(answer: Callable, prove: Prove) -> Iterator[tuple[Any, str]]:
    """Prove steps on the ragged batch with the learner's gradients; ask the report if it isn't."""
    report, mistake = _proved(answer, prove)
    yield mistake, mistake
    yield report.devices < 2, ONE_DEVICE
    said, factor = report.suggestion, _factor(report, "gradient norm")
    yield (
        any(leaf.kind == "non-finite" for leaf in report.leaves),
        "There are NaN or inf now: somewhere a device without a real example divides by nothing.",
    )
    yield (
        "mean of means" in said,
        "Still a mean of means: each device divides by the number of its own examples, and the "
        "devices then count alike.",
    )
    yield (
        "padding counts" in said,
        "Padding counts as real examples do: the mask has no say in the losses.",
    )
    yield (
        "padding included" in said or "number of all rows" in said,
        "The sum is right, but it is divided by the number of all rows. Padding is no example.",
    )
    yield (
        _near(factor, report.devices),
        "The gradients are as many times too large as there are devices.",
    )
    yield (
        _differs(report, "loss") and not _differs(report, "gradient norm"),
        "The gradients are right. The loss that you return isn't the mean over the real examples.",
    )
    yield not report.ok, f"Not yet what one device has. The report says: {said}"


def _proved(answer: Callable, prove: Prove) -> tuple[Any, str]:
    """The report on the learner's gradients, or what is wrong with what they return."""
    try:
        return prove(_watched(answer)), ""
    except Mistake as mistake:
        return None, str(mistake)


def _watched(gradients: Callable) -> Callable:
    @functools.wraps(gradients)
    def watched(params: Any, batch: Any, key: Any = None) -> Any:
        returned = gradients(params, batch, key)
        if returned is None:
            raise Mistake("Your function returns nothing: return the loss and the gradients.")
        if not isinstance(returned, tuple | list) or len(returned) != 2:
            raise Mistake("Return two things, in this order: the loss and the gradients.")
        if jax.tree.structure(returned[1]) != jax.tree.structure(params):
            raise Mistake("The second thing that you return hasn't the tree of the parameters.")
        if any("V:data" in str(jax.typeof(x)) for x in jax.tree.leaves(returned)):
            raise Mistake(
                "Every device must return the same, but something that you return is varying: it "
                "was never exchanged, or something varying went into it afterwards."
            )
        return returned

    return watched


def _factor(report: Report, metric: str) -> float:
    return next((x.factor or 0.0 for x in report.leaves if metric in x.path), 0.0)


def _differs(report: Report, metric: str) -> bool:
    return any(metric in leaf.path and leaf.status == "differs" for leaf in report.leaves)


def _near(a: float, b: float) -> bool:
    return abs(a - b) <= 1e-2 * b
