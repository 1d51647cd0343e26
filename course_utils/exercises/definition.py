"""What an exercise is, as the modules `lesson_NN` define it."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from course_utils.exercises.forms import Form

KINDS = ("predict", "fill the gap", "find the fault", "explain the figure")
Check = Callable[..., Iterator[tuple[Any, str]]]


@dataclass(frozen=True)
class Definition:
    """One exercise.

    Attributes:
        id: lesson and number, "05.2".
        title: what is to be done, in a few words.
        kind: one of `KINDS`.
        trains: the first words of each "You will" bullet of the lesson that it trains, enough
            to tell the bullet from the others.
        form: what an answer looks like.
        hints: one or two, the later the plainer; none gives the answer.
        right: what to say to a right answer: why it is right, or what it is good for.
        check: called with the answer, as its form reads it, and with the context that the
            lesson's cell hands over by name. It yields pairs (mistaken, message): the first
            pair whose `mistaken` is true is what went wrong, and if none is, the answer is
            right. So the last pair compares with the truth, which the check finds out on this
            machine; the pairs before it name the mistakes that people make.
    """

    id: str
    title: str
    kind: str
    trains: tuple[str, ...]
    form: Form
    hints: tuple[str, ...]
    right: str
    check: Check

    def __post_init__(self) -> None:
        """Refuse what the lesson couldn't show; ValueError."""
        if not re.fullmatch(r"\d\d\.\d", self.id):
            raise ValueError(f"{self.id!r} is no id of an exercise: expected one such as '05.2'")
        if self.kind not in KINDS:
            raise ValueError(f"{self.id}: kind {self.kind!r}; there are {', '.join(KINDS)}")
        if not 1 <= len(self.hints) <= 2 or not self.trains:
            raise ValueError(f"{self.id}: one or two hints, and at least one bullet that it trains")


def defined(
    id: str,
    title: str,
    *,
    kind: str,
    trains: tuple[str, ...],
    form: Form,
    hints: tuple[str, ...],
    right: str,
) -> Callable[[Check], Definition]:
    """Turn a check into the `Definition` of an exercise; the arguments are its attributes.

    Example:
        @defined("00.1", "Count the devices", kind="predict", trains=("say how many",),
                 form=whole_number(), hints=("Lesson 04 lists them.",), right="So it is.")
        def devices(answer, count):
            yield answer == 1 < count, "There is more than one."
            yield answer != count, "Look at the table above."
    """
    return lambda check: Definition(id, title, kind, trains, form, hints, right, check)
