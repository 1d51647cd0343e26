"""Parameters of a run: parsed from NAME=value, checked against what the lessons declare."""

import ast
import json
import math
from typing import Any

from course_utils.headless.errors import UsageError
from course_utils.headless.lessons import Lesson, did_you_mean

EVERY_LESSON = ("PROFILE", "DEVICES")


def split(assignments: list[str]) -> dict[str, str]:
    """{"NAME": "value"} from ["NAME=value"]; UsageError for anything else, or a name twice."""
    given: dict[str, str] = {}
    for text in assignments:
        name, equals, value = text.partition("=")
        if not equals or not name.isidentifier():
            raise UsageError(f"Parameter {text!r} is not of the form NAME=value.")
        if given.setdefault(name, value) != value:
            raise UsageError(f"Parameter {name} is given twice: {given[name]} and {value}.")
    return given


def check(given: dict[str, str], lessons: list[Lesson]) -> dict[str, dict[str, Any]]:
    """What each lesson is to be given: {lesson name: {parameter: value}}.

    PROFILE and DEVICES go to every lesson, others to the lessons that declare them. Lessons
    with a problem are given nothing.

    Raises:
        UsageError: no chosen lesson declares a name, a value has another type than the default
            it replaces (a default of None takes anything), or a lesson has no such PROFILE.
    """
    readable = [lesson for lesson in lessons if not lesson.problem]
    for name in given if readable else ():
        lacking = [lesson.name for lesson in readable if name not in lesson.defaults]
        if len(lacking) == len(readable):
            raise UsageError(_unknown(name, readable))
        if lacking and name in EVERY_LESSON:
            raise UsageError(f"{name} is not in the parameters cell of {', '.join(lacking)}.")
    values = {
        lesson.name: {
            name: convert(name, text, lesson.defaults[name], lesson.name)
            for name, text in given.items()
            if name in lesson.defaults
        }
        for lesson in lessons
    }
    for lesson in readable:
        _check_profile(values[lesson.name].get("PROFILE", "auto"), lesson)
    return values


def _check_profile(profile: str, lesson: Lesson) -> None:
    valid = ("auto", *lesson.profiles)
    if lesson.profiles and profile not in valid:  # else the lesson itself says so when it runs
        guess = did_you_mean(profile, valid)
        raise UsageError(f"PROFILE is {profile!r}; {lesson.name} has {', '.join(valid)}.{guess}")


def _unknown(name: str, lessons: list[Lesson]) -> str:
    guess = did_you_mean(name, {known for lesson in lessons for known in lesson.defaults})
    declared = (f"  {lesson.name}: {', '.join(lesson.defaults)}" for lesson in lessons)
    return "\n".join([f"No chosen lesson has a parameter {name}.{guess} They have:", *declared])


def convert(name: str, text: str, default: Any, lesson: str) -> Any:
    """`text` as a Python literal (or else as it stands) of the type that `default` has."""
    value = _literal(text)
    if isinstance(default, str) and not isinstance(value, str):
        value = text
    if isinstance(default, float) and type(value) is int:
        value = float(value)
    if default is not None and type(value) is not type(default):
        raise UsageError(
            f"{name}={text} is {_kind(value)}; {lesson} needs {_kind(default)} "
            f"(its default is {default!r})."
        )
    return value


def _literal(text: str) -> Any:
    try:
        value = ast.literal_eval(text)
        json.dumps(value, allow_nan=False)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return text
    # papermill would hand a tuple over as a string that looks like one.
    return list(value) if isinstance(value, tuple) else value


def _kind(value: Any) -> str:
    if isinstance(value, str) and not math.isnan(len(value)):
        return "text"
    names = {bool: "True or False", int: "a whole number", float: "a number"}
    return names.get(type(value), f"a {type(value).__name__}")
