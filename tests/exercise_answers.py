"""Answers to exercises, right and wrong: what tests/exercises/lesson_NN_answers.py are made of."""

import functools
import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

TABLES = Path(__file__).parent / "exercises"


@dataclass(frozen=True)
class Answers:
    """Answers to one exercise.

    Attributes:
        right: an answer that solves it.
        wrong: at least two that don't, as people make them, each under words of the message
            that it must get.
        context: what the lesson's cell hands over to the check.
        secret: texts that would give the answer away: no hint and no message has them.
        raises: code with an error in it, under words of what is then said; for functions.
    """

    right: Any
    wrong: Mapping[str, Any]
    context: Mapping[str, Any] = field(default_factory=dict)
    secret: tuple[str, ...] = ()
    raises: Mapping[str, Any] = field(default_factory=dict)


@functools.cache
def answers(lesson: str) -> dict[str, Answers]:
    """The table of a lesson: what `answers()` of its module returns, by id of the exercise."""
    path = TABLES / f"lesson_{lesson}_answers.py"
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.answers()
