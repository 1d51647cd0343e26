"""Exercise 11.6: a learning rate that has grown with the batch, once too often."""

from collections.abc import Callable, Iterator
from typing import Any

from course_utils.equivalence import Report
from course_utils.exercises.definition import defined
from course_utils.exercises.forms import function

SCALE = 4  # a batch so many times that of the tuning; its root is another number


@defined(
    "11.6",
    "Find out how often the rate has grown",
    kind="find the fault",
    trains=("read a report, name the cause", "make a step that you haven't seen"),
    form=function("count", "scale"),
    hints=(
        "Put numbers in: a tuned rate of 1, a batch four times as large. What is the rate in step 0, "
        "and what when the warm-up is over?",
        "The rule names two rates, one to start with and one to arrive at. Which of the two is `peak`, "
        "and which does the last line begin with?",
    ),
    right="Once, and only while warming up. Two people who each thought of the rule are how it got "
    "in twice; that the moments agree and the parameters don't is how the report could tell.",
)
def rate(
    answer: Callable, prove: Callable[[Callable], Report], tuned: float, warmup: int
) -> Iterator[tuple[Any, str]]:
    """Compare the rate at both ends of the warm-up and amid it with the rule, then prove."""
    values = [answer(count, SCALE) for count in (0, warmup, 10 * warmup)]
    yield any(value is None for value in values), "Your function returns nothing: return the rate."
    start, end, later = (float(value) / tuned for value in values)
    yield (
        _near(start, SCALE) and _near(end, SCALE),
        "The rate is right when the warm-up is over, but there is no warm-up: it starts there.",
    )
    yield (
        _near(start, 1) and _near(end, 1),
        "The rate never grows: with the larger batch it is still the tuned one.",
    )
    yield (
        _near(end, SCALE**2),
        "When the warm-up is over, the rate has grown by the square of `scale`: it was multiplied "
        "twice.",
    )
    yield (
        _near(end, SCALE**0.5),
        "It grows by the root of `scale`. Others do that; their rule says once.",
    )
    yield start == 0, "It starts with 0, where the rule starts with the tuned rate."
    yield not _near(start, 1), f"In step 0, the rate is {start:.3g} times the tuned one."
    yield (
        not _near(end, SCALE),
        f"For {SCALE} times the batch, the rate is {end:.3g} times the tuned one after the warm-up.",
    )
    yield not _near(later, SCALE), "It doesn't stay there when the warm-up is over."
    report = prove(answer)
    yield (
        not report.ok,
        "Both ends are right, but on the way the rate doesn't rise by equal steps, as the ramp does.",
    )


def _near(a: float, b: float) -> bool:
    return abs(a - b) <= 1e-3 * b
