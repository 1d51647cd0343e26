"""Find exercises by their ids.

Those of lesson 05 are defined in `lesson_05`, or in several modules `lesson_05_...` where one
would be long.
"""

import functools
import importlib
import pkgutil

from course_utils.exercises.definition import Definition
from course_utils.exercises.exercise import Exercise


class UnknownExercise(LookupError):
    """There is no exercise of that id; the message lists those of the lesson."""

    def _render_traceback_(self) -> list[str]:
        # What IPython shows: the call stands right above, our own frames would only hide it.
        return [f"{type(self).__name__}: {self}"]


def exercise(id: str) -> Exercise:
    """The exercise of this id, such as "05.2"; the same object at every call.

    Raises:
        UnknownExercise: there is none; the message lists the ids of the lesson.
    """
    if not isinstance(id, str):
        raise UnknownExercise(f"An exercise is named by text, such as '05.2', not by {id!r}.")
    if id not in all_ids():
        known = definitions(id.partition(".")[0])
        there = f"that lesson has {', '.join(known)}" if known else _lessons()
        raise UnknownExercise(f"There is no exercise {id!r}; {there}.")
    return _one(id)


@functools.cache
def _one(id: str) -> Exercise:
    # Kept for as long as the kernel lives: it remembers which hint comes next.
    return Exercise(definitions(id.partition(".")[0])[id], all_ids())


def _lessons() -> str:
    return f"exercises begin with the number of their lesson: {', '.join(lessons())}"


def lessons() -> list[str]:
    """The numbers of the lessons that have exercises, in order."""
    return sorted({name.split("_")[1] for name in _modules()})


def _modules() -> list[str]:
    package = importlib.import_module(__package__)
    names = (module.name for module in pkgutil.iter_modules(package.__path__))
    return [name for name in names if name.startswith("lesson_")]


def definitions(lesson: str) -> dict[str, Definition]:
    """The exercises of a lesson by id, in order; empty if it has none."""
    modules = [name for name in _modules() if name.split("_")[1] == lesson]
    found = [
        value
        for name in modules
        for value in vars(importlib.import_module(f"{__package__}.{name}")).values()
        if isinstance(value, Definition)
    ]
    return {one.id: one for one in sorted(found, key=lambda one: one.id)}


@functools.cache
def all_ids() -> tuple[str, ...]:
    """The ids of all exercises of the course, in order."""
    return tuple(id for lesson in lessons() for id in definitions(lesson))
