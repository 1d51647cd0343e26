"""Exercise 03.3: read the confusion matrix of this very run."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from course_utils.exercises.definition import defined
from course_utils.exercises.forms import choice, named, number, whole_number
from course_utils.fashion_mnist import CLASS_NAMES

NAME = "Shirt"


@defined(
    "03.3",
    "Read a confusion matrix",
    kind="explain the figure",
    trains=("read a confusion matrix by rows", "compute precision and recall from it"),
    form=named(
        {
            "shirts not found": whole_number(),
            "wrongly called shirts": whole_number(),
            "recall": number(),
            "precision": number(),
            "mostly taken for": choice(*CLASS_NAMES),
        }
    ),
    hints=(
        "`matrix[6]` is the row of the shirts, `matrix[:, 6]` their column. Which of the two is about "
        "images that *are* shirts?",
        "On the diagonal stand those that are shirts and were called so. What is left of the row, and "
        "what is left of the column? Both fractions have the diagonal above the line.",
    ),
    right="One network, one class, two numbers: who looks for shirts wants recall, who opens the box "
    "marked 'shirts' wants precision.",
)
def shirts(answer: dict[str, Any], matrix: np.ndarray) -> Iterator[tuple[Any, str]]:
    """Read row and column of the shirts."""
    place = CLASS_NAMES.index(NAME)
    row, column = np.delete(matrix[place], place), np.delete(matrix[:, place], place)
    hits, missed, strangers = int(matrix[place, place]), int(row.sum()), int(column.sum())
    swapped = answer["shirts not found"] == strangers and answer["wrongly called shirts"] == missed
    yield (
        swapped and missed != strangers,
        "Row and column are swapped: along a row lie the images that *are* of this class.",
    )
    for name, truth, line in (
        ("shirts not found", missed, "row"),
        ("wrongly called shirts", strangers, "column"),
    ):
        given = answer[name]
        yield (
            given != truth == given - hits,
            f"{name!r}: the diagonal is in it, and those are right.",
        )
        yield given != truth, f"{name!r}: add up the {line} without its entry on the diagonal."
    recall, named_so = hits / max(hits + missed, 1), hits + strangers
    precision = (
        hits / named_so if named_so else 0.0
    )  # as the lesson has it, where none is called so
    both = not np.isclose(recall, precision, atol=2e-3)
    yield (
        both and _near(answer["recall"], precision) and _near(answer["precision"], recall),
        "Recall and precision are the wrong way round.",
    )
    for name, truth, whole in (
        ("recall", recall, "images that are shirts"),
        ("precision", precision, "images that were called shirts"),
    ):
        given = answer[name]
        yield (
            not _near(given, truth) and _near(given / 100, truth),
            f"{name}: as a part of 1, please.",
        )
        yield not _near(given, truth), f"{name}: the hits, as a part of all {whole}."
    others = {name: matrix[place, i] for i, name in enumerate(CLASS_NAMES) if name != NAME}
    given = answer["mostly taken for"]
    yield given == NAME, "Most shirts may be found; the question is about those that aren't."
    yield (
        others[given] < row.max()
        and given == CLASS_NAMES[int(np.argmax(_without(matrix[:, place], place)))],
        "That class is most often called a shirt. What are shirts most often called?",
    )
    yield others[given] < row.max(), "Along the row of the shirts, another class is larger."


def _without(line: np.ndarray, place: int) -> np.ndarray:
    return np.where(np.arange(len(line)) == place, -1, line)


def _near(a: float, b: float) -> bool:
    return abs(a - b) <= 6e-4  # the table shows tenths of a percent
