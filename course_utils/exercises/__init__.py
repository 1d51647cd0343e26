"""Exercises of the lessons: check an answer, ask for a hint, look at the solution.

`exercise("05.2").check(answer)`, `.hint()`, `.solution()`.

Each lesson's exercises are defined in the modules `lesson_NN` or `lesson_NN_...` of this package,
and found there by their ids: there is no list of them. A definition says which of the lesson's "You will" bullets it
trains, what form an answer has, and, in a check, which mistakes it can tell from each other. The
solutions are in the folder solutions/ of the course, in the cells that replace the lesson's.
"""

from course_utils.exercises.book import UnknownExercise, exercise

__all__ = ["UnknownExercise", "exercise"]
