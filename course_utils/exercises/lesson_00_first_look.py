"""Exercise 00.1: how a lesson works."""

import json
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any

from course_utils.check.row import Row
from course_utils.check.show import as_json
from course_utils.exercises.definition import defined
from course_utils.exercises.forms import choice, named, whole_number


@defined(
    "00.1",
    "Read the first table, and say what a knob does",
    kind="explain the figure",
    trains=("know whether your machine is ready", "run cells, turn a knob"),
    form=named(
        {
            "not OK": whole_number(),
            "stops": choice("OK", "WARN", "FAIL"),
            "SIZE": choice("old", "new"),
        }
    ),
    hints=(
        "Count in the column on the left of the first table; below it stands what each of the words "
        "means.",
        "A cell is run when you run it, and not before. Which cell makes `config` of the knobs?",
    ),
    right="You have done your first exercise. And when a knob seems to do nothing: *Run All Cells*.",
)
def first_look(answer: dict[str, Any], rows: Sequence[Row]) -> Iterator[tuple[bool, str]]:
    """Count in the rows that this lesson has shown; ask the check of the machine; turn a knob."""
    count = sum(row.status != "OK" for row in rows)
    fine = len(rows) - count
    yield answer["not OK"] == fine != count, "So many rows say [OK]. The others are asked for."
    yield answer["not OK"] != count, "Count again: the rows that say something else than [OK]."
    stopping = [word for word in ("OK", "WARN", "FAIL") if not _ready(word)]
    yield answer["stops"] == "OK" not in stopping, "[OK] needs nothing, so it stops nothing."
    yield (
        answer["stops"] not in stopping,
        "With that one lessons run, if not as well as they could. Which is worse?",
    )
    yield (
        answer["SIZE"] != _after_turning(),
        "The matrices take their size from `config`, and `config` was made before the knob was "
        "turned. Nothing has made it anew.",
    )


def _ready(status: Any) -> bool:
    """Whether a machine with one row of this status is ready, as `make check` sees it."""
    return json.loads(as_json([Row(status, "a thing", "", "")]))["ready"]


def _after_turning() -> str:
    """Run two cells as the lesson has them, the first one again with another value."""
    cells = {"knobs": "SIZE = 256", "profile": "config = Config(SIZE=SIZE)"}
    kernel: dict[str, Any] = {"Config": SimpleNamespace}
    for code in cells.values():
        exec(code, kernel)
    exec("SIZE = 512", kernel)
    return "new" if kernel["SIZE"] == kernel["config"].SIZE else "old"
