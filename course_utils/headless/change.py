"""One figure in two runs: a change counts where it goes beyond the spread."""

import math
import statistics
from dataclasses import dataclass
from typing import Any

from course_utils.headless.direction import assumed_spread, better, is_cost, least_spread
from course_utils.headless.repeats import is_number

SLACK = {"s": 1.0, "MB": 20.0}  # of lessons' own seconds and memory: starting a kernel varies


@dataclass(frozen=True)
class Change:
    """One figure in two runs, A and B.

    Attributes:
        lesson, name, unit: which figure.
        a, b: its values, medians where a lesson was repeated; None where a run lacks it.
        ratio: b / a; None where there is none.
        spread: by how much the two may differ although nothing changed, as a fraction.
        assumed: whether one run has a single sample, so that the spread is a guess.
        verdict: "equal", "within spread", "better", "worse", "changed" (neither good nor
            bad), "not compared", "only in A", "only in B".
        regression: whether it is worse by more than the threshold.
    """

    lesson: str
    name: str
    unit: str
    a: Any
    b: Any
    ratio: float | None
    spread: float
    assumed: bool
    verdict: str
    regression: bool

    @property
    def bar(self) -> tuple[float, float] | None:
        """Left edge and width, in percent, of a bar from no change (50) to the ratio.

        The scale is logarithmic, from half at 0 to twice at 100.
        """
        if self.ratio is None or self.ratio <= 0:
            return None
        end = min(max(50 + 50 * math.log2(self.ratio), 0), 100)
        return min(end, 50), abs(end - 50)

    @property
    def tone(self) -> str:
        """How to colour it: worse, better, or within the spread."""
        return self.verdict if self.verdict in ("worse", "better", "changed") else "within"


def change(
    lesson: str,
    name: str,
    old: tuple | None,
    new: tuple | None,
    threshold: float,
    *,
    costs: bool = True,
) -> Change:
    """Judge a figure; `old` and `new` are (unit, samples), None where a run lacks it.

    Without `costs`, what work takes (times, rates, memory) is shown and not judged: the runs did
    different work.
    """
    unit = (old or new)[0]
    if not old or not new:
        a, b = (_middle(old[1]) if old else None), (_middle(new[1]) if new else None)
        verdict = "only in A" if old else "only in B"
        return Change(lesson, name, unit, a, b, None, 0.0, False, verdict, False)
    a, b = _middle(old[1]), _middle(new[1])
    if not costs and is_cost(unit):
        return Change(lesson, name, unit, a, b, None, 0.0, False, "not compared", False)
    spread = _spread(name, unit, old[1]) + _spread(name, unit, new[1])
    spread = max(spread, least_spread(name, unit, b))
    verdict = _verdict(name, unit, a, b, spread)
    numbers = is_number(a) and is_number(b)
    ratio = b / a if numbers and a else None
    regression = verdict == "worse" and _apart(a, b) > threshold
    assumed = numbers and min(len(old[1]), len(new[1])) == 1 and spread > 0
    return Change(lesson, name, unit, a, b, ratio, spread, assumed, verdict, regression)


def _middle(samples: list[Any]) -> Any:
    return statistics.median(samples) if all(map(is_number, samples)) else samples[-1]


def _spread(name: str, unit: str, samples: list[Any]) -> float:
    """(largest - smallest) / median of the samples; what is to be expected where there is one."""
    if len(samples) == 1 or not all(map(is_number, samples)):
        return assumed_spread(name, unit, samples[-1])
    middle = statistics.median(samples)
    return abs((max(samples) - min(samples)) / middle) if middle else 0.0


def _verdict(name: str, unit: str, a: Any, b: Any, spread: float) -> str:
    if a == b:
        return "equal"
    if not (is_number(a) and is_number(b)):
        return "changed"
    own = name in ("lesson time", "peak memory")
    if _apart(a, b) <= spread or (own and abs(b - a) <= SLACK[unit]):
        return "within spread"
    which = better(name, unit)
    if not which:
        return "changed"
    return "better" if (b > a) == (which == "higher") else "worse"


def _apart(a: float, b: float) -> float:
    """How far apart two values are, the same both ways: 2 and 1, like 1 and 2, by 1.0."""
    low, high = sorted((abs(a), abs(b)))
    if a * b < 0 or low == 0:
        return float("inf") if a != b else 0.0
    return high / low - 1
