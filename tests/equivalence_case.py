"""Cases of the table: parallel steps, right and wrong, each built for any number of devices."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from course_utils.equivalence import NotEqualToOneDevice, assert_equal_to_one_device

DEVICES = (2, 3, 4, 8)


@dataclass(frozen=True)
class Case:
    """A parallel step: what is special about it, and how it is compared.

    `build` makes the arguments of assert_equal_to_one_device for so many devices. For a wrong step
    `words` is what a helpful report says of it, `refused` that the step can't run at all.
    """

    name: str
    build: Callable[[int], dict[str, Any]]
    words: tuple[str, ...] = ()
    refused: bool = False
    wrong: bool = True


@dataclass(frozen=True)
class Outcome:
    """What came of a comparison: whether something was found, and what was said about it.

    `expected` is whether it has the words that it should. A report that knows no cause can have
    them, if they are advice; it names none.
    """

    caught: bool
    said: str
    expected: bool

    @property
    def named(self) -> bool:
        """Whether the true cause was named."""
        return self.expected and "no known fault fits" not in self.said


def outcome(case: Case, devices: int) -> Outcome:
    """Run a comparison that may fail."""
    options = {"steps": 3} | case.build(devices)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)
            report = assert_equal_to_one_device(**options)
    except NotEqualToOneDevice as failure:
        said = failure.report.suggestion
        return Outcome(True, said, all(word in said for word in case.words))
    except ValueError as error:
        if not case.refused:
            raise
        return Outcome(True, str(error), all(word in str(error) for word in case.words))
    return Outcome(False, str(report), False)


def cases(found: list[Case], wrong: bool = True) -> Callable[..., Callable[[Callable], Callable]]:
    """A decorator that adds a function of the number of devices to `found`."""

    def add(name: str, *words: str, refused: bool = False) -> Callable[[Callable], Callable]:
        def register(build: Callable) -> Callable:
            found.append(Case(name, build, words, refused, wrong))
            return build

        return register

    return add
