"""What the cache of compiled programs saves: the first process that compiles a step, and later ones."""

from typing import Any

from benchmarks.figures import Rounds, claim, paired_ratio
from benchmarks.group import Group
from benchmarks.tasks.compiling import COMPILE, TRACE
from benchmarks.variant import Variant

TASK = "benchmarks.tasks.compiling:FirstStep"


def claims(rounds: Rounds) -> list[Any]:
    """What a filled cache is to save."""
    text = "a kept program is there so many times sooner than a new one"
    return [claim(text, paired_ratio(rounds, "cold", "warm", COMPILE), ">=", 15)]


GROUP = Group(
    name="compiling",
    title="Compiling the step",
    how="A new process each time. With an empty cache, compiling includes writing it.",
    variants=(
        Variant("cold", "the cache is empty", TASK, ("empty",)),
        Variant("warm", "an earlier process has filled it", TASK, ("filled",)),
    ),
    columns=(TRACE, COMPILE),
    rounds=11,
    quick_rounds=3,
    claims=claims,
    fresh=True,
)
