"""The recorded figures of a lesson as rows of a table, with bars where bars mean something."""

import re
from dataclasses import dataclass
from typing import Any

from course_utils.display import format_value
from course_utils.headless.repeats import is_number

# Parts of a whole: their bar is measured against 1, whatever else the lesson recorded.
SHARE = re.compile(r"\b(accuracy|recall|precision|efficiency|fraction|share)\b", re.IGNORECASE)


@dataclass(frozen=True)
class Row:
    """One figure.

    Attributes:
        name, text: what was measured, and its value with its unit.
        bar: length of its bar from 0 to 1, None where a bar would compare nothing.
        spread: "11.2 to 12.9, spread 14 %" where a lesson ran several times, else empty.
    """

    name: str
    text: str
    bar: float | None
    spread: str


def groups(results: dict[str, dict[str, Any]]) -> list[list[Row]]:
    """Figures that can be compared with each other, together: one scale for each group."""
    grouped: dict[tuple[str, str], list[str]] = {}
    for name, figure in results.items():
        grouped.setdefault(_kind(name, figure), []).append(name)
    return [_rows({name: results[name] for name in names}) for names in grouped.values()]


def _kind(name: str, figure: dict[str, Any]) -> tuple[str, str]:
    if figure["unit"]:
        return "", figure["unit"]
    # Without a unit, "steps, jit" and "steps, eager" have one kind, "steps" and "rows" don't.
    return re.split(r"[,:]", name)[0], ""


def _rows(figures: dict[str, dict[str, Any]]) -> list[Row]:
    numbers = [f["value"] for f in figures.values() if is_number(f["value"]) and f["value"] >= 0]
    longest = max(numbers) if len(numbers) > 1 else 0
    return [
        Row(
            name,
            f"{format_value(figure['value'])} {figure['unit']}".strip(),
            _bar(name, figure, longest),
            spread(figure.get("samples", [])),
        )
        for name, figure in figures.items()
    ]


def _bar(name: str, figure: dict[str, Any], longest: float) -> float | None:
    value = figure["value"]
    if not is_number(value) or value < 0:
        return None
    if not figure["unit"] and isinstance(value, float) and value <= 1 and SHARE.search(name):
        return value
    return value / longest if longest else None


def spread(samples: list[Any]) -> str:
    """Smallest, largest and (largest - smallest) / median of repeats, in words."""
    numbers = sorted(filter(is_number, samples))
    if len(numbers) < 2:
        return ""
    low, high, middle = numbers[0], numbers[-1], numbers[len(numbers) // 2]
    if low == high:
        return "the same each time"
    share = f", spread {abs((high - low) / middle):.0%}" if middle else ""
    return f"{format_value(low)} to {format_value(high)}{share}"
