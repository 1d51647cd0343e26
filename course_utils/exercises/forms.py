"""What an answer looks like: read one, or say what was expected instead."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

from course_utils.display import format_value, scalar


class WrongForm(Exception):
    """An answer that no check can judge; the message says what is expected, and what came."""


@dataclass(frozen=True)
class Form:
    """One form of answers.

    Attributes:
        expects: what an answer is, in words that follow "expected".
        read: returns the answer as checks get it; raises `WrongForm`.
    """

    expects: str
    read: Callable[[Any], Any]


def seen(answer: object) -> str:
    """Say in a few words what an answer is: "the text 'two'", "a list of 3"."""
    answer = scalar(answer)
    if answer is None or isinstance(answer, bool):
        return repr(answer)
    if isinstance(answer, Real):
        return f"the number {format_value(answer)}"
    if isinstance(answer, str):
        return f"the text {answer[:40]!r}"
    if isinstance(answer, list | tuple | set | dict):
        return f"a {type(answer).__name__} of {len(answer)}"
    return "a function" if callable(answer) else f"something of type {type(answer).__name__}"


def _refuse(expects: str, answer: object, more: str = "") -> WrongForm:
    return WrongForm(f"Expected {expects}; this is {seen(answer)}.{more}")


def whole_number() -> Form:
    """Form of counts: an int, or a float or scalar array without a fraction."""
    expects = "a whole number"

    def read(answer: object) -> int:
        value = scalar(answer)
        if isinstance(value, bool) or not isinstance(value, Real) or value % 1 != 0:
            raise _refuse(expects, answer)
        return int(value)

    return Form(expects, read)


def number(unit: str = "") -> Form:
    """Form of measures: any finite number; `unit` says of what."""
    expects = f"a number of {unit}" if unit else "a number"

    def read(answer: object) -> float:
        value = scalar(answer)
        finite = isinstance(value, Real) and not isinstance(value, bool) and abs(value) < 1e308
        if not finite:
            raise _refuse(expects, answer)
        return float(value)

    return Form(expects, read)


def shape() -> Form:
    """Form of shapes: a tuple or list of whole numbers."""
    expects = "a shape, a tuple of whole numbers such as (3, 4)"

    def read(answer: object) -> tuple[int, ...]:
        if not isinstance(answer, list | tuple):
            more = " A shape of one dimension has a comma: (3,)."
            raise _refuse(expects, answer, more if isinstance(scalar(answer), Real) else "")
        return tuple(whole_number().read(size) for size in answer)

    return Form(expects, read)


def choice(*options: str) -> Form:
    """Form of a choice between words; case and outer spaces don't matter."""
    expects = "one of " + ", ".join(map(repr, options))
    known = {option.casefold(): option for option in options}

    def read(answer: object) -> str:
        if not isinstance(answer, str) or answer.strip().casefold() not in known:
            raise _refuse(expects, answer)
        return known[answer.strip().casefold()]

    return Form(expects, read)


def or_none(form: Form) -> Form:
    """`form`, or None for "there is none"."""
    expects = f"{form.expects}, or None if there is none"
    return Form(expects, lambda answer: None if answer is None else form.read(answer))


def named(forms: Mapping[str, Form]) -> Form:
    """Form of several answers in a dict, each of its own form."""
    expects = "a dict with " + ", ".join(map(repr, forms))

    def read(answer: object) -> dict[str, Any]:
        if not isinstance(answer, Mapping):
            raise _refuse(expects, answer)
        if missing := [name for name in forms if name not in answer]:
            raise _refuse(expects, answer, f" It lacks {', '.join(map(repr, missing))}.")
        return {name: _read_part(name, form, answer[name]) for name, form in forms.items()}

    return Form(expects, read)


def _read_part(name: str, form: Form, answer: object) -> Any:
    try:
        return form.read(answer)
    except WrongForm as error:
        raise WrongForm(f"Under {name!r}: {error}") from None


def function(*parameters: str) -> Form:
    """Form of code: a function that can be called with these parameters, by position."""
    expects = f"a function of ({', '.join(parameters)})"

    def read(answer: object) -> Callable:
        if not callable(answer):
            raise _refuse(expects, answer)
        try:
            inspect.signature(answer).bind(*parameters)
        except (TypeError, ValueError) as error:
            raise _refuse(expects, answer, f" It can't be called like that: {error}.") from None
        return answer

    return Form(expects, read)
