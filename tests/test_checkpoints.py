import json

import html5lib
import numpy as np
import pytest
from display_capture import shown
from IPython.utils.capture import capture_output

from course_utils.checkpoints import (
    CHECKPOINT,
    ENVIRONMENT,
    RECORD,
    CheckpointFailed,
    checkpoint,
    record,
    record_environment,
)

pytestmark = pytest.mark.usefixtures("shell")

HOSTILE = '</div><script>alert("1")</script>\n&amp;\x1b[31m\x00'


def published(function, *args, **kwargs):
    """The data of the one bundle that a call publishes, and the failure that it raises."""
    raised = []

    def call():
        try:
            function(*args, **kwargs)
        except CheckpointFailed as error:
            raised.append(error)

    data, _ = shown(call)
    return data, raised[0] if raised else None


def words(data):
    parser = html5lib.HTMLParser(strict=True, namespaceHTMLElements=False)
    tree = parser.parseFragment(data["text/html"])
    assert {element.tag for element in tree.iter()} <= {
        "DOCUMENT_FRAGMENT",
        "div",
        "strong",
        "bdi",
        "br",
    }
    return "".join(tree.itertext())


def test_the_data_types_are_the_ones_that_readers_know():
    assert CHECKPOINT == "application/vnd.jax-course.checkpoint+json"
    assert RECORD == "application/vnd.jax-course.record+json"
    assert ENVIRONMENT == "application/vnd.jax-course.environment+json"


def test_a_passed_checkpoint_is_one_line_and_hides_its_hint():
    data, error = published(checkpoint, "the loss falls", True, hint="never seen")
    assert error is None
    assert data["text/plain"] == words(data) == "✓ passed: the loss falls"
    assert data[CHECKPOINT] == {"name": "the loss falls", "passed": True, "detail": ""}


def test_a_failed_checkpoint_publishes_and_then_raises_name_and_hint():
    data, error = published(checkpoint, "the loss falls", False, hint="Is the rate 3e-3?")
    assert data["text/plain"] == "✗ FAILED: the loss falls\n  Is the rate 3e-3?"
    assert words(data) == "✗ FAILED: the loss fallsIs the rate 3e-3?"
    assert data[CHECKPOINT] == {
        "name": "the loss falls",
        "passed": False,
        "detail": "Is the rate 3e-3?",
    }
    assert str(error) == "the loss falls: Is the rate 3e-3?"
    assert isinstance(error, AssertionError)


def test_a_checkpoint_may_fail_without_a_hint():
    data, error = published(checkpoint, "the loss falls", False)
    assert data["text/plain"] == "✗ FAILED: the loss falls"
    assert str(error) == "the loss falls"


def test_a_learner_sees_the_message_and_none_of_our_frames(shell, capsys):
    shell.run_cell(
        "from course_utils.checkpoints import checkpoint\ncheckpoint('falls', False, 'why')"
    )
    output = capsys.readouterr().out
    assert "CheckpointFailed: falls: why" in output
    assert "checkpoints.py" not in output


@pytest.mark.parametrize("passed", [True, False])
def test_one_boolean_of_any_library_decides(passed):
    jnp = pytest.importorskip("jax.numpy")
    for condition in (passed, np.bool_(passed), np.array(passed), jnp.array(passed)):
        data, error = published(checkpoint, "it holds", condition)
        assert data[CHECKPOINT]["passed"] is passed
        assert (error is None) is passed


@pytest.mark.parametrize(
    ("condition", "advice"),
    [
        (float("nan"), r"condition is of type float, not a boolean: write the comparison"),
        (np.float32(1), "condition is of dtype float32, not a boolean"),
        (np.array(1.0), "condition is of dtype float64, not a boolean"),
        (1, "condition is of type int"),
        (None, "condition is of type NoneType"),
        ("True", "condition is of type str"),
        ([True], "condition is of type list"),
        (np.array([True, False]), r"boolean array of shape \(2,\): write its \.all\(\) or \.any"),
        (np.array([True]), r"boolean array of shape \(1,\)"),
    ],
)
def test_what_is_no_boolean_is_refused_with_what_to_write(condition, advice):
    with capture_output() as captured, pytest.raises(TypeError, match=advice):
        checkpoint("it holds", condition)
    assert captured.outputs == []


@pytest.mark.parametrize("function", [checkpoint, record, record_environment])
def test_every_display_needs_a_name(function):
    rest = () if function is record_environment else (True,)
    with pytest.raises(ValueError, match="is empty"):
        function(" \n", *rest)
    with pytest.raises(TypeError, match="must be a str, got int"):
        function(3, *rest)


def test_no_user_text_becomes_markup():
    data, _ = published(checkpoint, HOSTILE, False, hint=HOSTILE)
    assert words(data).count('<script>alert("1")</script>') == 2
    data, _ = published(record, HOSTILE, HOSTILE, unit=HOSTILE)
    assert words(data).count('<script>alert("1")</script>') == 3
    assert "\n" not in data["text/plain"]
    data, _ = published(record_environment, HOSTILE, fact=HOSTILE)
    assert words(data).count('<script>alert("1")</script>') == 1


@pytest.mark.parametrize(
    ("value", "kept", "line"),
    [
        (58211.94, 58211.94, "speed: 58,212 examples/s"),
        (3, 3, "speed: 3 examples/s"),
        (True, True, "speed: yes examples/s"),
        ("fast", "fast", "speed: fast examples/s"),
        (np.float32(0.5), 0.5, "speed: 0.5 examples/s"),
        (np.int64(7), 7, "speed: 7 examples/s"),
        (np.bool_(False), False, "speed: no examples/s"),
    ],
)
def test_the_report_keeps_the_value_that_is_published(value, kept, line):
    data, _ = published(record, "speed", value, unit="examples/s")
    assert data[RECORD] == {"name": "speed", "value": kept, "unit": "examples/s"}
    assert type(data[RECORD]["value"]) is type(kept)
    assert data["text/plain"] == words(data) == line


def test_jax_scalars_are_kept_as_python_numbers():
    jnp = pytest.importorskip("jax.numpy")
    data, _ = published(record, "loss", jnp.float32(0.25))
    assert data[RECORD] == {"name": "loss", "value": 0.25, "unit": ""}
    assert data["text/plain"] == "loss: 0.25"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), np.float32("-inf")])
def test_a_figure_that_json_cannot_hold_is_refused_by_name(value):
    with pytest.raises(ValueError, match=r"loss is .*finite"):
        record("loss", value)


@pytest.mark.parametrize("value", [None, [1], np.ones(2), 1j])
def test_a_figure_is_one_value(value):
    with pytest.raises(TypeError, match="loss: expected a number, bool or str, got"):
        record("loss", value)


def test_facts_about_the_environment_are_json_beside_one_plain_line():
    data, _ = published(
        record_environment, "2 devices", devices=np.int64(2), kinds=("cpu", None), name="x"
    )
    assert data[ENVIRONMENT] == {"devices": 2, "kinds": ["cpu", None], "name": "x"}
    assert data["text/plain"] == words(data) == "2 devices"
    json.dumps(data[ENVIRONMENT], allow_nan=False)


def test_a_fact_that_json_cannot_hold_is_refused_by_name():
    with pytest.raises(TypeError, match="device: object has no form in JSON"):
        record_environment("x", device=object())
    with pytest.raises(ValueError, match="speed: "):
        record_environment("x", speed=float("nan"))


def test_a_fact_may_be_called_summary():
    data, _ = published(record_environment, "x", summary="y")
    assert data[ENVIRONMENT] == {"summary": "y"}


def test_outside_ipython_the_text_is_printed_and_a_failure_raises(monkeypatch, capsys):
    monkeypatch.setattr("course_utils.display._publish._in_ipython", lambda: False)
    record("speed", 1.5, "ms")
    with pytest.raises(CheckpointFailed, match="falls: why"):
        checkpoint("falls", False, "why")
    assert capsys.readouterr().out == "speed: 1.5 ms\n✗ FAILED: falls\n  why\n"
