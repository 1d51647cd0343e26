"""Exercise 09.3: a process that shuffles in another way, and who notices."""

import functools
import json
from collections.abc import Iterator

from course_utils.exercises.definition import defined
from course_utils.exercises.forms import choice, named

CHECKS = ("shape", "loss", "one all-reduce", "copies", "parameters")


@defined(
    "09.3",
    "Say which check notices another seed",
    kind="predict",
    trains=("prove that many processes train", "let each process load its own rows"),
    form=named(dict.fromkeys(CHECKS, choice("notices", "passes"))),
    hints=(
        "Process 1 takes its part of another order: as many rows, real images with their labels, but "
        "some that process 0 has as well, and others that nobody has.",
        "Go through the checks one by one: of what is each made? A shape, a trend, a compiled "
        "program, a comparison of devices with each other, a comparison with one process.",
    ),
    right="Training goes on, and looks well; everyone agrees, on other numbers than they should. "
    "Only a comparison with a run that is known to be right tells.",
)
def another_seed(answer: dict[str, str]) -> Iterator[tuple[bool, str]]:
    """Train two processes with and without the fault, and let each check look."""
    truth = {name: "notices" if seen else "passes" for name, seen in _noticed().items()}
    for name, message in (
        ("shape", "Process 1 gives as many rows as it should. Does a shape know which they are?"),
        (
            "loss",
            "The rows are real images with their own labels, only not the ones they should be. Can "
            "a network learn from them?",
        ),
        (
            "one all-reduce",
            "The collectives stand in the compiled program. Is it another one for other images?",
        ),
        (
            "copies",
            "The all-reduce gives every device the same mean, whatever went into it. What do the "
            "devices do with it?",
        ),
        (
            "parameters",
            "Half of each global batch isn't what one process would take. Do the same parameters "
            "come of it?",
        ),
    ):
        yield answer[name] != truth[name], message


@functools.cache
def _noticed() -> dict[str, bool]:
    """For each check, whether it notices; the copies of the two processes are compared here."""
    from course_utils.processes import launch

    argv = ["-m", "course_utils.exercises.other_seed"]
    said = launch(argv, 2, 1, timeout=240, echo=lambda line: None)
    facts = [json.loads(line) for one in said for line in one.lines if line.startswith("{")]
    copies = [each.pop("parameters as bytes") for each in facts]
    return facts[0] | {"copies": copies[0] != copies[1]}
