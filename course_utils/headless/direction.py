"""Which way a recorded figure is better, and how far it may move when nothing has changed."""

import re
from typing import Any

from course_utils.headless.repeats import is_number

RATE = re.compile(r"\S/s$")
TIME = re.compile(r"^(s|ms|us|\u00b5s|\u03bcs|ns|min|seconds)(/\w+)?$")  # two signs for micro
SIZE = re.compile(r"^([kKMGT]i?)?(B|bytes)(/\w+)?$")
HIGHER = re.compile(r"\b(accuracy|recall|precision|efficiency|speedup|fraction of matmul)\b", re.I)
LOWER = re.compile(r"\b(loss|error|compiles)\b", re.I)

# The spread that a figure is given when its lesson ran once, as a fraction of its value. Two
# runs of one program on one idle machine seldom differ by more; a busy machine needs repeats.
MEASURED, MEMORY, LEARNED, EXACT = 0.25, 0.10, 0.05, 0.0
LEAST = 0.03


def better(name: str, unit: str) -> str:
    """Say "higher", "lower", or "" where a change is neither good nor bad.

    The unit decides (rates, times, bytes), then words of the name: accuracy, loss, error...
    """
    if RATE.search(unit):
        return "higher"
    if TIME.match(unit) or SIZE.match(unit):
        return "lower"
    if HIGHER.search(name):
        return "higher"
    return "lower" if LOWER.search(name) else ""


def is_cost(unit: str) -> bool:
    """Whether a figure with this unit says what work takes: a rate, a time or a size."""
    return bool(RATE.search(unit) or TIME.match(unit) or SIZE.match(unit))


def assumed_spread(name: str, unit: str, value: Any) -> float:
    """The spread to expect of a figure of which there is one sample."""
    if RATE.search(unit) or TIME.match(unit):
        return MEASURED
    if not is_number(value) or isinstance(value, int):
        return EXACT
    if SIZE.match(unit):
        return MEMORY
    return LEARNED if re.search(r"\b(accuracy|recall|precision|loss)\b", name, re.I) else MEASURED


def least_spread(name: str, unit: str, value: Any) -> float:
    """What two runs may differ by although each is steady: clock speed, place in memory."""
    return LEAST if assumed_spread(name, unit, value) >= MEMORY else 0.0
