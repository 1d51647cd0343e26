"""Judge an answer: not attempted, solved, wrong, or an error in the learner's own code."""

import inspect
import linecache
import traceback
from dataclasses import dataclass
from typing import Any

from course_utils.exercises.definition import Definition
from course_utils.exercises.forms import WrongForm
from course_utils.exercises.gaps import open_gaps

LONGEST = 400


@dataclass(frozen=True)
class Outcome:
    """What became of an answer.

    Attributes:
        status: "not attempted", "solved", "wrong" or "error".
        message: what to tell the learner.
        code: the line of the learner's code that raised, if one did.
    """

    status: str
    message: str
    code: str = ""


def judge(exercise: Definition, answer: Any, context: dict[str, Any]) -> Outcome:
    """Judge `answer`, with what the lesson's cell hands over by name; raises nothing of its own.

    Only what stops the whole kernel, such as KeyboardInterrupt, comes through.
    """
    open_ones, gaps = open_gaps(answer)
    if open_ones:
        return Outcome("not attempted", _still_open(exercise.id, open_ones, gaps))
    try:
        inspect.signature(exercise.check).bind(answer, **context)
    except TypeError as error:
        return Outcome("error", f"The check was called in another way than the lesson's: {error}.")
    try:
        read = exercise.form.read(answer)
    except WrongForm as error:
        return Outcome("wrong", str(error))
    try:
        for mistaken, message in exercise.check(read, **context):
            if mistaken:
                return Outcome("wrong", message)
    except (Exception, SystemExit) as error:
        return _raised(exercise, read, error)
    return Outcome("solved", exercise.right)


def _still_open(id: str, names: list[str], gaps: int) -> str:
    if len(names) < gaps:
        return f"Not complete yet. Still to be filled in: {', '.join(names)}."
    gap, answer = ("each `...`", "an answer") if gaps > 1 else ("the `...`", "your answer")
    return (
        f"Not attempted yet. Replace {gap} in this cell by {answer} and run the cell again; "
        f'`exercise("{id}").hint()` helps.'
    )


def _raised(exercise: Definition, answer: Any, error: BaseException) -> Outcome:
    said = f"{type(error).__name__}: {error}".strip().rstrip(":")
    said = said if len(said) <= LONGEST else said[:LONGEST].rstrip() + " ..."
    if line := _line_of(answer, error):
        return Outcome("error", f"Your code raised {said}", line)
    if callable(answer):
        return Outcome("error", f"What your function returns can't be judged. {said}")
    return Outcome("error", f"The check of exercise {exercise.id} itself failed. {said}")


def _line_of(answer: Any, error: BaseException) -> str:
    """The last line of the learner's own cell that the error went through; empty if none."""
    code = getattr(inspect.unwrap(answer), "__code__", None) if callable(answer) else None
    frames = [
        (number, frame.f_code.co_filename)
        for frame, number in traceback.walk_tb(error.__traceback__)
        if code is not None and frame.f_code.co_filename == code.co_filename
    ]
    if not frames:
        return ""
    number, filename = frames[-1]
    return f"line {number}: {linecache.getline(filename, number).strip()}"
