"""Assert what a learner should see, and keep figures for the report.

Each call shows a line to the learner and puts the same facts, as JSON, into the same display
output; a reader of the executed notebook finds them there under `CHECKPOINT`, `RECORD` and
`ENVIRONMENT`.
"""

import json
import math

from course_utils.display import as_html, callout, format_value, one_line, publish, scalar

CHECKPOINT = "application/vnd.jax-course.checkpoint+json"
RECORD = "application/vnd.jax-course.record+json"
ENVIRONMENT = "application/vnd.jax-course.environment+json"


class CheckpointFailed(AssertionError):
    """A learner does not see what the lesson promises; the message says what to do."""

    def _render_traceback_(self):
        # What IPython shows. The red block and the cell stand right above: our own frames
        # in between would only hide the hint.
        return [f"{type(self).__name__}: {self}"]


def checkpoint(name: str, condition: object, hint: str = "") -> None:
    """Say that a promise of the lesson holds, or raise.

    Publishes `CHECKPOINT` data {"name": str, "passed": bool, "detail": str}, the detail being
    the hint of a failed checkpoint and empty otherwise.

    Args:
        name: the promise in words, for example "the loss falls".
        condition: a bool, a NumPy bool or a boolean array of no dimension.
        hint: what to look at if it fails.

    Raises:
        CheckpointFailed: the condition is false; the message holds name and hint.
        TypeError: the condition is no single boolean: bool(nan) is true, so numbers aren't.
        ValueError: an empty name.

    Example:
        checkpoint("the loss falls", last < first, hint="Is the learning rate 3e-3?")
    """
    name, passed = _checked_name(name), _as_bool(condition)
    hint = "" if passed else str(hint)
    shown = ("✓", "passed", name, "good") if passed else ("✗", "FAILED", name, "bad", hint)
    text, html = callout(*shown)
    publish(text, html, {CHECKPOINT: {"name": name, "passed": passed, "detail": hint}})
    if not passed:
        raise CheckpointFailed(f"{name}: {hint}" if hint else name)


def record(name: str, value: object, unit: str = "") -> None:
    """Keep a figure for the report, and show it.

    Publishes `RECORD` data {"name": str, "value": int | float | bool | str, "unit": str}.

    Args:
        name: what was measured; within a lesson each name is used once.
        value: int, float, bool, str, or a NumPy or JAX scalar; finite.
        unit: for example "examples/s".

    Raises:
        ValueError: NaN or infinite (the report's JSON has neither), or an empty name.
        TypeError: any other type; the message names the figure.

    Example:
        record("jit speed", timing.examples_per_s, unit="examples/s")
    """
    name, value = _checked_name(name), scalar(value)
    if not isinstance(value, bool | int | float | str):
        raise TypeError(f"{name}: expected a number, bool or str, got {type(value).__name__}")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{name} is {value}: a report keeps finite figures only")
    shown = f"{format_value(value)} {unit}".strip()
    publish(
        f"{one_line(name)}: {one_line(shown)}",
        f"<div><bdi>{as_html(name)}</bdi>: <bdi>{as_html(shown)}</bdi></div>",
        {RECORD: {"name": name, "value": value, "unit": str(unit)}},
    )


def record_environment(summary: str, /, **facts: object) -> None:
    """Keep facts about where a lesson ran, and show them as one plain line.

    Publishes `ENVIRONMENT` data, the facts. A notebook may do so several times, for its
    devices and for its data set; whoever reads it merges them.

    Args:
        summary: the facts in words, for the learner.
        **facts: JSON-able values; NumPy and JAX scalars too.

    Raises:
        TypeError: a fact that JSON has no form for; the message names it.
        ValueError: a fact that is NaN or infinite, or an empty summary.

    Example:
        record_environment("2 simulated CPU devices", backend="cpu", devices=2)
    """
    summary = _checked_name(summary, "summary")
    data = {key: _as_json(key, value) for key, value in facts.items()}
    publish(one_line(summary), f"<div><bdi>{as_html(summary)}</bdi></div>", {ENVIRONMENT: data})


def _checked_name(name, what="name"):
    if not isinstance(name, str):
        raise TypeError(f"{what} must be a str, got {type(name).__name__}")
    if not one_line(name):
        raise ValueError(f"{what} is empty")
    return one_line(name)


def _as_bool(condition):
    if isinstance(condition, bool):
        return condition
    dtype, shape = getattr(condition, "dtype", None), getattr(condition, "shape", None)
    if dtype is not None and str(dtype) == "bool":
        if shape == ():
            return bool(condition)
        raise TypeError(
            f"condition is a boolean array of shape {shape}: write its .all() or .any()"
        )
    kind = f"of type {type(condition).__name__}" if dtype is None else f"of dtype {dtype}"
    raise TypeError(
        f"condition is {kind}, not a boolean: write the comparison you mean, "
        "for example `loss < 0.5` (any number but 0 counts as true, even NaN)"
    )


def _as_json(key, value):
    try:
        return json.loads(json.dumps(value, allow_nan=False, default=_json_scalar))
    except (TypeError, ValueError) as error:
        raise type(error)(f"{key}: {error}") from None


def _json_scalar(value):
    plain = scalar(value)
    if plain is value:
        raise TypeError(f"{type(value).__name__} has no form in JSON")
    return plain
