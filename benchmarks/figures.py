"""Medians with their spread, and ratios of what was measured in the same round."""

import operator
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

_RELATIONS = {">=": operator.ge, "<=": operator.le, "==": operator.eq}

Rounds = Sequence[Mapping[str, Mapping[str, float]]]  # per round: variant -> quantity -> value


def figure(samples: Sequence[float]) -> dict[str, float]:
    """Return {"median", "min", "max", "n"} of some samples.

    Raises:
        ValueError: no samples.
    """
    if not samples:
        raise ValueError("a figure needs at least one sample")
    return {
        "median": statistics.median(samples),
        "min": min(samples),
        "max": max(samples),
        "n": len(samples),
    }


def per_variant(rounds: Rounds) -> dict[str, dict[str, dict[str, float]]]:
    """Return variant -> quantity -> figure over the rounds that the variant took part in."""
    samples: dict[str, dict[str, list[float]]] = {}
    for answers in rounds:
        for name, quantities in answers.items():
            for quantity, value in quantities.items():
                samples.setdefault(name, {}).setdefault(quantity, []).append(value)
    return {
        name: {quantity: figure(values) for quantity, values in quantities.items()}
        for name, quantities in samples.items()
    }


def samples(rounds: Rounds, name: str, quantity: str) -> dict[str, float] | None:
    """Return the figure of one variant's quantity; None if no round has it."""
    found = [r[name][quantity] for r in rounds if quantity in r.get(name, {})]
    return figure(found) if found else None


def paired_ratio(rounds: Rounds, over: str, under: str, quantity: str) -> dict[str, float] | None:
    """Return the figure of `over` / `under`, round by round; None if they share no round.

    A busy moment of the machine meets both sides of a round, so ratios spread less than times.
    """
    both = [r for r in rounds if quantity in r.get(over, {}) and quantity in r.get(under, {})]
    pairs = [(r[over][quantity], r[under][quantity]) for r in both]
    return figure([above / below for above, below in pairs]) if pairs else None


def claim(
    text: str, found: Mapping[str, float] | None, relation: str, wanted: float, of: int = 0
) -> dict[str, Any]:
    """Return what is to hold and whether its median does; what wasn't measured doesn't hold.

    Args:
        text: for people, what the figure is.
        found: the figure; None where a side of it wasn't measured.
        relation: what it is to be: ">=", "<=" or "==" what is `wanted`.
        wanted: the bound.
        of: how many samples there must be, so that a round without one isn't passed over.
    """
    holds = bool(found) and _RELATIONS[relation](found["median"], wanted) and found["n"] >= of
    return {"text": text, "figure": found, "wanted": f"{relation} {wanted:g}", "holds": holds}
