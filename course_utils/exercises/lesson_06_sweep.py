"""Exercise 06.2: a sweep that goes on, and says what it did."""

from collections.abc import Callable, Iterator
from typing import Any

import jax

from course_utils.exercises.definition import defined
from course_utils.exercises.forms import function

FULL = "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 64424509440 bytes."


@defined(
    "06.2",
    "Make a batch divide, and let the sweep go on",
    kind="fill the gap",
    trains=("sweep over batch sizes so that one failure",),
    form=function("run", "batch", "devices"),
    hints=(
        "`batch % devices` is what is left over. And which exceptions should end a sweep: the one that "
        "says that there is no more memory, or all the others?",
        "`attempt` above catches `jax.errors.JaxRuntimeError`, reads its text, and raises it again "
        "unless it is about memory.",
    ),
    right="What a sweep may survive is named, everything else is a fault and must be seen; and the "
    "size that was run is told, not the one that was asked for.",
)
def robust(attempt: Callable) -> Iterator[tuple[Any, str]]:
    """Try it with runs that succeed, run out of memory, or have a fault."""
    asked: list[int] = []

    def fine(batch: int) -> str:
        asked.append(batch)
        return f"figures of {batch}"

    returned = attempt(fine, 96, 3)
    yield returned is None, "Your function returns nothing: return the size and its figures."
    yield (
        not isinstance(returned, tuple) or len(returned) != 2,
        "Return two things, as `return a, b` does: the size that was run, and its figures.",
    )
    yield len(asked) != 1, f"`run` was called {len(asked)} times for one size that divides."
    yield returned != (96, "figures of 96"), "A size that divides is run as it is."
    rounded = attempt(fine, 100, 3)
    yield len(asked) < 2, "A size that doesn't divide can be made to: nothing was run."
    yield asked[-1] % 3 != 0, f"{asked[-1]} examples still don't divide by 3 devices."
    yield asked[-1] > 100, "Round down: a batch larger than asked for may not fit into memory."
    yield asked[-1] != 99, "There is a larger size that divides and isn't above the one asked for."
    yield rounded[0] != 99, "Return the size that was run. Nobody ran the one that was asked for."
    tries = len(asked)
    none = attempt(fine, 2, 3)
    yield (
        len(asked) > tries or not isinstance(none[1], str) or none[1].startswith("figures"),
        "Two examples for three devices: there is nothing to run. Return a word that says so.",
    )
    yield from _failures(attempt)


def _failures(attempt: Callable) -> Iterator[tuple[Any, str]]:
    def outcome(error: Exception) -> Any:
        """What the learner's function makes of a run that raises `error`."""

        def run(batch: int) -> None:
            raise error

        try:
            return attempt(run, 96, 3)
        except type(error):
            return error

    full = outcome(jax.errors.JaxRuntimeError(FULL))
    yield (
        isinstance(full, Exception),
        "A size that doesn't fit into memory has ended the sweep. Return a word in its place.",
    )
    yield not isinstance(full[1], str), "Of a size that doesn't fit, return a word that says so."
    for error, what in (
        (KeyError("batchs"), "a misspelt name in the run"),
        (jax.errors.JaxRuntimeError("INTERNAL: a kernel failed"), "a device that failed"),
    ):
        yield (
            not isinstance(outcome(error), Exception),
            f"Your sweep has swallowed {what}: only a lack of memory says something about the size.",
        )
