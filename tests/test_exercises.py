"""An exercise says what became of an answer, and stops no lesson whatever a learner writes."""

import json
import linecache
import multiprocessing
import textwrap

import numpy as np
import pytest
from filelock import FileLock

from course_utils.exercises import UnknownExercise, exercise, progress, showing, solutions
from course_utils.exercises.book import all_ids, definitions
from course_utils.exercises.definition import defined
from course_utils.exercises.exercise import Exercise
from course_utils.exercises.forms import choice, function, named, number, or_none, shape
from course_utils.exercises.forms import whole_number as whole
from course_utils.exercises.judging import Outcome, judge


def small(form, check):
    """An exercise with this check."""
    asked = {"kind": "predict", "trains": ("count",), "form": form, "hints": ("first", "second")}
    return defined("00.1", "Count", **asked, right="So it is.")(check)


def three(answer, counted=3):
    yield answer == 2, "One is missing."
    yield answer != counted, "Count again."


def judged(answer, form=None, check=three, **context):
    return judge(small(form or whole(), check), answer, context)


def cell(code, **names):
    """What a cell defines, with the cell's source where Python looks for it."""
    source = textwrap.dedent(code).lstrip()
    filename = f"<cell {hash(source)}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    exec(compile(source, filename, "exec"), names)
    return names["answer"]


def test_the_first_mistake_that_applies_is_named_and_without_one_the_answer_is_right():
    assert judged(2).message == "One is missing."
    assert (judged(7).status, judged(7).message) == ("wrong", "Count again.")
    assert (judged(3).status, judged(3).message) == ("solved", "So it is.")
    assert judged(4, counted=4).status == "solved"


@pytest.mark.parametrize("answer", [..., {"a": ..., "b": ...}, [..., ...]], ids=repr)
def test_open_gaps_are_no_attempt(answer):
    outcome = judged(answer)
    assert outcome.status == "not attempted"
    assert 'exercise("00.1").hint()' in outcome.message


def test_an_answer_that_is_half_done_says_what_is_open():
    outcome = judged({"rows": 3, "columns": ...})
    assert (outcome.status, outcome.message) == (
        "not attempted",
        "Not complete yet. Still to be filled in: columns.",
    )


@pytest.mark.parametrize(
    "code",
    [
        "def answer(x):\n    ...",
        'def answer(x):\n    """Add."""\n    ...',
        "def answer(x):\n    y = ...\n    return y",
        "def answer(x):\n    return sum(x, start=...)",
    ],
)
def test_a_function_with_a_gap_in_it_is_not_called(code):
    assert judged(cell(code), function("x")).status == "not attempted"


@pytest.mark.parametrize(
    "code", ["def answer(x):\n    return x[..., 0]", "answer = lambda x: x[0, ..., 0]"]
)
def test_an_ellipsis_in_an_index_is_no_gap(code):
    def check(answer):
        yield answer(np.full((2, 2, 2), 3)).max() != 3, "Not three."

    assert judged(cell(code), function("x"), check).status == "solved"


@pytest.mark.parametrize(
    ("form", "answer", "said"),
    [
        (whole(), "3", "Expected a whole number; this is the text '3'"),
        (whole(), True, "this is True"),
        (whole(), 2.5, "this is the number 2.5"),
        (whole(), float("nan"), "this is the number nan"),
        (number("seconds"), float("inf"), "Expected a number of seconds; this is the number inf"),
        (shape(), 3, "A shape of one dimension has a comma: (3,)"),
        (shape(), np.ones(2), "something of type ndarray"),
        (shape(), (3, "x"), "Expected a whole number; this is the text 'x'"),
        (choice("yes", "no"), "maybe", "Expected one of 'yes', 'no'; this is the text 'maybe'"),
        (or_none(whole()), "x", "Expected a whole number"),
        (named({"a": whole()}), 3, "Expected a dict with 'a'; this is the number 3"),
        (named({"a": whole(), "b": whole()}), {"a": 1}, "It lacks 'b'"),
        (named({"a": shape()}), {"a": None}, "Under 'a': Expected a shape"),
        (function("x"), 3, "Expected a function of (x); this is the number 3"),
        (function("x"), lambda: 3, "It can't be called like that: too many positional"),
    ],
)
def test_an_answer_of_another_form_is_told_what_is_expected(form, answer, said):
    outcome = judged(answer, form)
    assert outcome.status == "wrong"
    assert said in outcome.message


@pytest.mark.parametrize("answer", [3, 3.0, np.int64(3), np.float32(3), np.array(3)])
def test_a_number_counts_whatever_library_it_comes_from(answer):
    assert judged(answer).status == "solved"


def calls(answer):
    yield answer(0) != 3, "Not three."


def test_an_error_in_the_learners_code_is_shown_with_the_line_of_their_cell():
    code = """
        def helper(x):
            return 1 / x

        def answer(x):
            y = x + 1
            return helper(x) + y
    """
    outcome = judged(cell(code), function("x"), calls)
    assert outcome.status == "error"
    assert outcome.message == "Your code raised ZeroDivisionError: division by zero"
    assert outcome.code == "line 2: return 1 / x"


def test_an_error_in_what_others_wrote_points_at_the_learners_call_of_it():
    outcome = judged(
        cell("import json\ndef answer(x):\n    return json.loads('?')"), function("x"), calls
    )
    assert outcome.code == "line 3: return json.loads('?')"


def test_a_cell_that_leaves_the_kernel_does_not():
    assert judged(cell("def answer(x):\n    exit(1)"), function("x"), calls).status == "error"


def test_an_interrupt_comes_through():
    with pytest.raises(KeyboardInterrupt):
        judged(cell("def answer(x):\n    raise KeyboardInterrupt"), function("x"), calls)


def test_a_result_that_cannot_be_compared_is_no_traceback():
    def check(answer):
        yield answer(0) + 1 != 3, "Not three."

    outcome = judged(cell("answer = lambda x: 'x'"), function("x"), check)
    assert (outcome.status, outcome.code) == ("error", "")
    assert outcome.message.startswith("What your function returns can't be judged. TypeError")


def test_a_check_that_fails_by_itself_says_so_and_blames_nobody():
    def check(answer):
        yield 1 / 0, ""

    assert "The check of exercise 00.1 itself failed" in judged(3, check=check).message


def test_a_check_without_what_it_needs_says_how_it_is_called():
    outcome = judged(3, counted=3, devices=8)
    assert outcome.status == "error"
    assert "unexpected keyword argument 'devices'" in outcome.message


def test_an_unknown_id_lists_those_of_the_lesson():
    with pytest.raises(UnknownExercise, match=r"no exercise '01.9'; that lesson has 01.1, 01.2"):
        exercise("01.9")
    with pytest.raises(UnknownExercise, match=r"begin with the number of their lesson: .*01, "):
        exercise("5.1")
    for other in (5.1, ["05.1"], None):
        with pytest.raises(UnknownExercise, match="named by text"):
            exercise(other)


def test_ids_are_found_without_a_list_of_them():
    assert [id for id in all_ids() if id.startswith("01")] == ["01.1", "01.2", "01.3", "01.4"]
    assert exercise("01.1") is exercise("01.1")
    assert repr(exercise("01.1")).startswith("Exercise 01.1 · find the fault: Repair a step")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"kind": "guess"}, "kind 'guess'"),
        ({"hints": ()}, "one or two hints"),
        ({"trains": ()}, "at least one bullet"),
    ],
)
def test_a_definition_that_cannot_be_shown_is_refused(change, said):
    asked = {"kind": "predict", "trains": ("count",), "hints": ("x",), "right": "", "form": whole()}
    with pytest.raises(ValueError, match=said):
        defined("00.1", "Count", **asked | change)(three)
    with pytest.raises(ValueError, match="is no id"):
        defined("1.1", "Count", **asked)(three)


def test_hints_come_one_after_the_other_and_the_last_stays(capsys):
    asked = Exercise(small(whole(), three), ())
    said = []
    for _ in range(3):
        asked.hint()
        said.append(capsys.readouterr().out.strip())
    assert said == [
        "» Exercise 00.1, hint 1 of 2: first",
        "» Exercise 00.1, hint 2 of 2: second",
        "» Exercise 00.1, hint 2 of 2: second",
    ]


def test_who_has_solved_it_gets_no_hint_any_more(capsys):
    asked = Exercise(small(whole(), three), ())
    asked.check(3)
    capsys.readouterr()
    asked.hint()
    assert capsys.readouterr().out == ""


def test_a_solution_is_shown_with_its_reason(capsys):
    exercise("01.3").solution()
    shown = capsys.readouterr().out
    assert shown.startswith("» Exercise 01.3, a solution: Each step reports the loss")
    assert '    exercise("01.3").check(curve, log=log)' in shown


def test_without_the_solutions_their_place_is_named(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(solutions, "FOLDER", tmp_path)
    exercise("01.3").solution()
    assert "they are in solutions/lesson_01.py" in capsys.readouterr().out
    (tmp_path / "lesson_01.py").write_text("# %% exercise:01.1\n1\n")
    exercise("01.3").solution()
    assert "has none for exercise 01.3" in capsys.readouterr().out


def test_what_is_code_is_shown_as_code_and_what_a_learner_wrote_is_never_html(monkeypatch):
    shown = []
    monkeypatch.setattr(showing, "publish", lambda *bundle: shown.append(bundle))
    outcome = Outcome("error", "Use `a < b`, not <b>.", 'line 1: x = "<script>"')
    showing.show_outcome("00.1", outcome, 1, "")
    ((text, rich, data),) = shown
    assert "Use `a < b`, not <b>." in text
    assert ">a &lt; b</code>, not &lt;b&gt;." in rich
    assert "<script>" not in rich
    assert data[showing.EXERCISE] == {
        "id": "00.1",
        "status": "error",
        "attempts": 1,
        "message": "Use `a < b`, not <b>.",
    }


# Progress


@pytest.fixture
def state(monkeypatch, tmp_path):
    """A participant's folder."""
    monkeypatch.setenv(progress.VARIABLE, str(tmp_path / "state"))
    return tmp_path / "state"


COURSE = ("01.1", "01.2", "05.1")


def kept(state):
    return sorted(json.loads((state / "progress.json").read_text())["solved"])


def test_what_is_solved_is_kept_and_counted_once(state):
    progress.keep("01.1", COURSE)
    assert progress.keep("01.1", COURSE) == (
        "Solved in this lesson: 1 of 2. In the whole course: 1 of 3 exercises."
    )
    assert progress.keep("05.1", COURSE) == (
        "Solved in this lesson: 1 of 1. In the whole course: 2 of 3 exercises."
    )
    assert kept(state) == ["01.1", "05.1"]


def test_an_exercise_that_no_longer_exists_does_not_count(state):
    progress.keep("09.9", COURSE)
    assert "1 of 3" in progress.keep("01.1", COURSE)


def test_it_lives_in_the_users_state_folder(monkeypatch, tmp_path):
    monkeypatch.delenv(progress.VARIABLE)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert progress.folder() == tmp_path / "jax-course"
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert progress.folder() == tmp_path / ".local/state/jax-course"


def test_off_keeps_nothing(monkeypatch, tmp_path):
    monkeypatch.setenv(progress.VARIABLE, "off")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert progress.keep("01.1", COURSE) == ""
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made_costs_only_the_progress(monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv(progress.VARIABLE, str(tmp_path / "file" / "state"))
    said = progress.keep("01.1", COURSE)
    assert said.startswith("Your progress could not be kept (Not a directory)")
    assert progress.VARIABLE in said


def test_a_full_or_read_only_disk_costs_only_the_progress(state, monkeypatch):
    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(progress, "write_atomically", refuse)
    assert "(Permission denied)" in progress.keep("01.1", COURSE)


def test_a_user_without_a_home_loses_only_the_progress(monkeypatch):
    def homeless():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv(progress.VARIABLE)
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setattr(progress.Path, "home", homeless)
    assert "Could not determine home directory" in progress.keep("01.1", COURSE)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"solved": 3}', b"\xff\x00"], ids=repr)
def test_a_file_that_cannot_be_read_is_put_aside(state, content):
    state.mkdir()
    (state / "progress.json").write_bytes(content)
    assert "1 of 3" in progress.keep("01.1", COURSE)
    assert kept(state) == ["01.1"]
    assert (state / "progress.broken").read_bytes() == content


def test_a_lock_that_somebody_holds_is_not_waited_for_long(state, monkeypatch):
    monkeypatch.setattr(progress, "LOCK_WAIT_S", 0.05)
    state.mkdir()
    with FileLock(state / ".progress.lock"):
        assert "another kernel holds" in progress.keep("01.1", COURSE)


def test_two_kernels_that_write_at_once_lose_nothing(state):
    ids = [f"{lesson:02}.{number}" for lesson in range(10) for number in range(1, 5)]
    context = multiprocessing.get_context("spawn")
    with context.Pool(2) as pool:
        pool.starmap(progress.keep, [(id, COURSE) for id in ids])
    assert kept(state) == ids


def test_every_definition_says_something_to_a_right_answer():
    lessons = {id.partition(".")[0] for id in all_ids()}
    silent = [one.id for n in lessons for one in definitions(n).values() if len(one.right) < 20]
    assert silent == []
