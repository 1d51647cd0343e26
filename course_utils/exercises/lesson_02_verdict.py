"""Exercise 02.4: what repeats of two dtypes allow to say."""

import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from course_utils.exercises.definition import defined
from course_utils.exercises.forms import choice, named, number

_VERDICT = choice("faster", "slower", "no difference", "unfair")


@defined(
    "02.4",
    "Reach a verdict, or refuse one",
    kind="explain the figure",
    trains=("compare two dtypes fairly",),
    form=named({"A": _VERDICT, "B": _VERDICT, "C": _VERDICT, "D": _VERDICT, "here": number()}),
    hints=(
        "First ask whether both did the same work and nothing else. Then compare medians, and the "
        "difference with the spread: largest less smallest, over the median.",
        "One comparison gave the two dtypes batches of different sizes; in another, one repeat is far "
        "longer than the others, and it is the first. For `here`, the table above has examples a second.",
    ),
    right="Fairness comes before arithmetic, and the spread before the verdict. Both medians may "
    "differ by a tenth and mean nothing.",
)
def verdicts(
    answer: dict[str, Any], comparisons: Mapping[str, Any], timings: Mapping[str, Any]
) -> Iterator[tuple[Any, str]]:
    """Judge the figures of the cell by the rule of the lesson; take the last from this run."""
    for name, runs in comparisons.items():
        given, truth = answer[name], _verdict(runs["float32"], runs["bfloat16"])
        yield given != truth, f"{name}: {_why(given, truth)}"
    slow, fast = (timings[dtype].examples_per_s for dtype in ("float32", "bfloat16"))
    ratio, here = fast / slow, answer["here"]
    yield (
        not _near(here, ratio) and _near(here, slow / fast),
        "`here` is upside down: a ratio above 1 says that bfloat16 handles more examples.",
    )
    yield not _near(here, ratio), "`here`: bfloat16's examples a second, over float32's."


def _verdict(slow: Mapping[str, Any], fast: Mapping[str, Any]) -> str:
    if slow["batch"] != fast["batch"] or any(_compiled(x["ms"]) for x in (slow, fast)):
        return "unfair"
    gain = statistics.median(slow["ms"]) / statistics.median(fast["ms"]) - 1
    if abs(gain) <= max(_spread(slow["ms"]), _spread(fast["ms"])):
        return "no difference"
    return "faster" if gain > 0 else "slower"


def _compiled(ms: Sequence[float]) -> bool:
    """True for a first repeat that is far above all others, as one that compiles is."""
    return ms[0] > 3 * max(ms[1:])


def _spread(ms: Sequence[float]) -> float:
    return (max(ms) - min(ms)) / statistics.median(ms)


def _why(given: str, truth: str) -> str:
    if truth == "unfair":
        return "before you compare times, ask whether both did the same work, and nothing else."
    if given == "unfair":
        return "the batches are alike, and no repeat stands out. The comparison is fair."
    if truth == "no difference":
        return "the repeats of one dtype alone lie further apart than the two medians."
    return (
        "compare the medians. These are times: which dtype needs less, and by more than the spread?"
    )


def _near(a: float, b: float) -> bool:
    return abs(a - b) <= 0.01 * abs(b)
