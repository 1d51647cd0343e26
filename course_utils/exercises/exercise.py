"""An exercise as a learner meets it in a cell."""

from typing import Any

from course_utils.exercises import progress, showing, solutions
from course_utils.exercises.definition import Definition
from course_utils.exercises.judging import judge


class Exercise:
    """`exercise("05.2")`: `.check(answer)`, `.hint()`, `.solution()`.

    None of them raises for what a learner has written: a cell with an exercise always ends, so
    that Run All goes on.
    """

    def __init__(self, definition: Definition, course: tuple[str, ...]) -> None:
        """Take the definition, and the ids of all exercises of the course, to say how far one is."""
        self.definition, self._course = definition, course
        self._attempts = self._hints = 0
        self._solved = False

    def check(self, answer: Any, **context: Any) -> None:
        """Judge `answer` and say what was found.

        Args:
            answer: a value, a dict of values, or a function, as the exercise asks; `...` in it
                is a gap that is still open.
            **context: what the check needs of the lesson, as the lesson's cell hands it over.
        """
        outcome = judge(self.definition, answer, context)
        self._attempts += outcome.status != "not attempted"
        self._solved = outcome.status == "solved"
        told = progress.keep(self.definition.id, self._course) if outcome.status == "solved" else ""
        showing.show_outcome(self.definition.id, outcome, self._attempts, told)

    def hint(self) -> None:
        """Show a hint: the first, at the next call the next, then the last again; solved, none."""
        if self._solved:
            return
        hints = self.definition.hints
        self._hints = min(self._hints + 1, len(hints))
        showing.show_hint(self.definition.id, hints[self._hints - 1], self._hints, len(hints))

    def solution(self) -> None:
        """Show the code that solves the exercise, and why; say so if it isn't on this machine."""
        try:
            found = solutions.find(self.definition.id)
        except LookupError as error:
            showing.show_missing(self.definition.id, str(error))
        else:
            showing.show_solution(self.definition.id, found)

    def __repr__(self) -> str:
        """One line: what it is about, and what can be asked of it."""
        one = self.definition
        return f"Exercise {one.id} · {one.kind}: {one.title} [.check(answer) .hint() .solution()]"
