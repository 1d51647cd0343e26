"""Exercise 06.1: what a claim of scaling says, and what it doesn't."""

from collections.abc import Iterator, Mapping
from typing import Any

from course_utils.exercises.definition import defined
from course_utils.exercises.forms import choice, named, number

_FAST = choice("gain", "no gain", "no verdict")


@defined(
    "06.1",
    "Judge three claims",
    kind="explain the figure",
    trains=("tell weak from strong scaling", "read a verdict from ratio"),
    form=named(
        {
            "weak ratio": number(),
            "weak efficiency": number(),
            "strong ratio": number(),
            "strong efficiency": number(),
            "tuned": _FAST,
            "simulated": _FAST,
        }
    ),
    hints=(
        "For each ratio, choose the run of one device first: it has as many examples *per device* for "
        "weak scaling, as many *in all* for strong. Then divide what should grow, or what should shrink.",
        "An efficiency compares the ratio with the number of devices. A difference counts if it is "
        "larger than the spread of both runs, and if the clock meant something.",
    ),
    right="The same four devices are good at one question and poor at the other. Whoever says "
    "'so many times as fast' has to say which batch stayed the same.",
)
def claims(answer: dict[str, Any], runs: Mapping[str, Any]) -> Iterator[tuple[Any, str]]:
    """Calculate with the figures that the cell gives."""
    one, large, many = (runs[name] for name in ("one", "one, large batch", "many"))
    n = many["devices"]
    weak = _rate(many) / _rate(one)
    strong = large["ms"] / many["ms"]
    yield (
        _near(answer["weak ratio"], strong) and _near(answer["strong ratio"], weak),
        "Weak and strong are the wrong way round: which of them keeps the batch per device?",
    )
    for kind, truth in (("weak", weak), ("strong", strong)):
        ratio, efficiency = answer[f"{kind} ratio"], answer[f"{kind} efficiency"]
        yield _near(ratio, 1 / truth), f"The {kind} ratio is upside down: a gain is above 1."
        yield (
            kind == "weak" and _near(ratio, one["ms"] / many["ms"]),
            "Weak scaling gives many devices more to do, so compare examples a second, not times.",
        )
        yield (
            not _near(ratio, truth),
            f"The {kind} ratio: which two runs does that question compare, and by what?",
        )
        yield _near(efficiency, 100 * truth / n), "Give efficiencies as parts of 1, not in percent."
        yield (
            not _near(efficiency, truth / n),
            f"The {kind} efficiency: the ratio, measured by that of perfect devices.",
        )
    yield (
        answer["tuned"] != _verdict(runs["before"], runs["tuned"]),
        "Compare the difference of 'before' and 'tuned' with their spread.",
    )
    yield (
        answer["simulated"] != "no verdict",
        "Those devices share the cores of one machine. What does a clock say about them?",
    )


def _rate(run: Mapping[str, Any]) -> float:
    return run["batch"] / run["ms"]


def _verdict(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    gain = before["ms"] / after["ms"] - 1
    return "gain" if gain > max(before["spread"], after["spread"]) else "no gain"


def _near(a: float, b: float) -> bool:
    return abs(a - b) <= 0.01 * abs(b)  # whoever rounds to two digits behind the point is right
