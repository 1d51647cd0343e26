"""What a learner sees of an exercise: one callout, and code below it where there is any."""

import html
import re
from typing import Any

from course_utils.display import callout, publish
from course_utils.exercises.judging import Outcome
from course_utils.exercises.solutions import Solution

EXERCISE = "application/vnd.jax-course.exercise+json"

_SIGNS = {
    "not attempted": ("○", "", "info"),
    "solved": ("✓", " solved", "good"),
    "wrong": ("✗", " not yet right", "warn"),
    "error": ("✗", " stopped by an error", "bad"),
}
_BLOCK = (
    "color:inherit;background:rgba(128,128,128,0.12);padding:0.5em 0.8em;margin:0.3em 0;"
    "overflow-x:auto;line-height:1.4"
)
_WORD = "color:inherit;background:rgba(128,128,128,0.15);padding:0 0.25em;border-radius:3px"
# A theme may paint the background of code as that of the page, in patches on ours.
_PLAIN = "color:inherit;background:transparent;padding:0"


def show_outcome(id: str, outcome: Outcome, attempts: int, progress: str) -> None:
    """Say what became of an answer, and how far the course is.

    Publishes `EXERCISE` data {"id": str, "status": str, "attempts": int, "message": str}.
    """
    sign, word, tone = _SIGNS[outcome.status]
    data = {"id": id, "status": outcome.status, "attempts": attempts, "message": outcome.message}
    shown = callout(sign, f"Exercise {id}{word}", outcome.message, tone, progress)
    _publish(shown, outcome.code, {EXERCISE: data})


def show_hint(id: str, hint: str, number: int, hints: int) -> None:
    """Show one hint of several."""
    _publish(callout("»", f"Exercise {id}, hint {number} of {hints}", hint, "info"))


def show_solution(id: str, solution: Solution) -> None:
    """Show why a solution is one, and its code."""
    shown = callout("»", f"Exercise {id}, a solution", solution.why, "info")
    _publish(shown, solution.code)


def show_missing(id: str, message: str) -> None:
    """Say that the solution can't be shown."""
    _publish(callout("⚠", f"Exercise {id}, no solution here", message, "warn"))


def _publish(shown: tuple[str, str], code: str = "", data: dict[str, Any] | None = None) -> None:
    text, rich = shown
    rich = re.sub(r"`([^`<>]+)`", rf'<code style="{_WORD}">\1</code>', rich)
    if code:
        text = "\n".join([text, *(f"    {line}".rstrip() for line in code.splitlines())])
        # tabindex: who has no mouse can scroll it, too
        block = f'<code style="{_PLAIN}">{html.escape(code)}</code>'
        rich += f'<pre tabindex="0" style="{_BLOCK}">{block}</pre>'
    publish(text, rich, data)
