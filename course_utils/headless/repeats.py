"""The entry of a lesson in results.json: before it runs, and after one or several attempts."""

import statistics
from collections.abc import Iterator
from typing import Any

DONE = ("passed", "failed", "timeout")


def not_run(name: str) -> dict[str, Any]:
    """The entry before the lesson runs."""
    return {
        "name": name,
        "status": "not run",
        "seconds": None,
        "cell_seconds": [],
        "peak_memory_mb": None,
        "error": None,
        "checkpoints": [],
        "exercises": {},
        "results": {},
    }


def file_name(lesson: str, attempt: int) -> str:
    """Name of the executed notebook of an attempt, without suffix; attempts count from 1."""
    return lesson if attempt == 1 else f"{lesson}.repeat-{attempt}"


def still_to_run(entry: dict[str, Any], repeat: int) -> int:
    """How many attempts an entry still needs."""
    if repeat == 1:
        return int(entry["status"] not in DONE)
    return max(0, repeat - len(entry.get("repeats", ())))


def begin(entry: dict[str, Any]) -> None:
    """Mark the entry as running; what earlier attempts found stays."""
    if not entry.get("repeats"):
        entry.update(not_run(entry["name"]))
    entry["status"] = "running"


def add(entry: dict[str, Any], attempt: dict[str, Any], repeat: int) -> None:
    """Put an attempt that is over into its entry."""
    if repeat == 1:
        entry.update(attempt)
    else:
        entry.setdefault("repeats", []).append(attempt)
        entry.update(merged(entry["repeats"]))


def shown(attempts: list[dict[str, Any]]) -> int:
    """Index of the attempt that stands for all: the first that did not pass, else the first."""
    bad = (i for i, attempt in enumerate(attempts) if attempt["status"] != "passed")
    return next(bad, 0)


def merged(attempts: list[dict[str, Any]]) -> dict[str, Any]:
    """The entry of several attempts: medians of numbers, the rest from the one that is shown.

    Each figure keeps the values of all attempts as "samples".
    """
    times = [a["seconds"] for a in attempts if a["seconds"] is not None]
    peaks = [a["peak_memory_mb"] for a in attempts if a["peak_memory_mb"]]
    names = dict.fromkeys(name for attempt in attempts for name in attempt["results"])
    return {
        **attempts[shown(attempts)],
        "seconds": round(statistics.median(times), 3) if times else None,
        "peak_memory_mb": max(peaks, default=None),
        "results": {name: _figure(_values(attempts, name)) for name in names},
    }


def _values(attempts: list[dict[str, Any]], name: str) -> Iterator[dict[str, Any]]:
    return (attempt["results"][name] for attempt in attempts if name in attempt["results"])


def _figure(found: Iterator[dict[str, Any]]) -> dict[str, Any]:
    figures = list(found)
    samples = [figure["value"] for figure in figures]
    value = statistics.median(samples) if all(map(is_number, samples)) else samples[-1]
    return {"value": value, "unit": figures[-1]["unit"], "samples": samples}


def is_number(value: Any) -> bool:
    """Whether a recorded value can be averaged: yes and no, and words, cannot."""
    return isinstance(value, int | float) and not isinstance(value, bool)
