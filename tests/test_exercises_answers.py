"""Every exercise tells right answers from wrong ones, and names the mistake, not the answer."""

import functools

import pytest
from exercise_answers import answers

from course_utils.exercises.book import all_ids, definitions
from course_utils.exercises.judging import judge

NONSENSE = {
    "None": None,
    "text": "?",
    "negative fraction": -1.5,
    "empty list": [],
    "empty dict": {},
    "object": object(),
    "function without parameters": lambda: 0,
}
each_exercise = pytest.mark.parametrize("id", all_ids())


def table(id):
    """The definition of an exercise, and its answers."""
    lesson = id.partition(".")[0]
    return definitions(lesson)[id], answers(lesson)[id]


@functools.cache
def wrong_outcomes(id):
    """What becomes of each wrong answer, by the words that its message must have."""
    exercise, given = table(id)
    return {
        words: judge(exercise, answer, dict(given.context)) for words, answer in given.wrong.items()
    }


@each_exercise
def test_a_right_answer_solves_it(id):
    exercise, given = table(id)
    outcome = judge(exercise, given.right, dict(given.context))
    assert (outcome.status, outcome.message) == ("solved", exercise.right)


@each_exercise
def test_each_typical_mistake_gets_a_message_of_its_own(id):
    outcomes = wrong_outcomes(id)
    for words, outcome in outcomes.items():
        assert outcome.status == "wrong", (words, outcome)
        assert words in outcome.message
    assert len(outcomes) >= 2
    assert len({outcome.message for outcome in outcomes.values()}) == len(outcomes)


@each_exercise
def test_an_error_in_the_learners_code_is_shown_with_its_own_line(id):
    exercise, given = table(id)
    for words, answer in given.raises.items():
        outcome = judge(exercise, answer, dict(given.context))
        assert outcome.status == "error"
        assert words in outcome.code + outcome.message
        assert "course_utils" not in outcome.code + outcome.message


@each_exercise
def test_neither_hints_nor_messages_give_the_answer_away(id):
    exercise, given = table(id)
    told = [*exercise.hints, *(outcome.message for outcome in wrong_outcomes(id).values())]
    assert [(secret, text) for text in told for secret in given.secret if secret in text] == []


@each_exercise
def test_an_open_gap_is_not_an_attempt(id):
    exercise, given = table(id)
    untouched = dict.fromkeys(given.right, ...) if isinstance(given.right, dict) else ...
    outcome = judge(exercise, untouched, dict(given.context))
    assert outcome.status == "not attempted"
    assert f'exercise("{id}").hint()' in outcome.message


@each_exercise
@pytest.mark.parametrize("nonsense", NONSENSE.values(), ids=NONSENSE)
def test_an_answer_of_another_kind_is_told_what_is_expected(id, nonsense):
    exercise, given = table(id)
    outcome = judge(exercise, nonsense, dict(given.context))
    assert outcome.status == "wrong"
    assert exercise.form.expects in outcome.message
