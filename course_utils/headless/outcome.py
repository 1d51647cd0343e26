"""The entry of one lesson in results.json."""

import re
from pathlib import Path
from typing import Any

from papermill.exceptions import PapermillExecutionError

from course_utils.headless.collect import Reported, collect
from course_utils.headless.engine import DIED, Execution
from course_utils.headless.failing import failing_line
from course_utils.headless.flood import Meter
from course_utils.headless.repeats import not_run
from course_utils.headless.watch import Reason

ANSI = re.compile(r"\x1b\[[0-9;]*m")
LONGEST = 600
# Cells that hold parameters teach nothing: a lesson of these alone has not run.
SETTINGS = {"parameters", "injected-parameters"}


def unreadable(problem: str) -> dict[str, Any]:
    """The outcome of a lesson that is no notebook to run."""
    hint = "Restore the file: git checkout brings back the committed one."
    error = {"cell": None, "message": shorten(problem), "hint": hint}
    return {**not_run(""), "status": "failed", "seconds": 0.0, "error": error}


def judge(execution: Execution, raised: Exception | None) -> dict[str, Any]:
    """Status, error, times and reports of an execution that is over."""
    cells = execution.notebook.cells if execution.notebook else []
    reported = collect(cells)
    why = _death(execution, raised) or _failure(execution, raised, cells, reported)
    return {
        "status": why.status if why else "passed",
        "cell_seconds": execution.cell_seconds,
        "peak_memory_mb": round(execution.watch.peak_bytes / 2**20, 1) or None,
        "error": why
        and {
            "cell": _place(execution, cells) if raised else execution.meter.where,
            "message": shorten(why.message),
            "hint": why.hint,
        },
        "checkpoints": reported.checkpoints,
        "exercises": reported.exercises,
        "results": reported.results,
    }


def _place(execution: Execution, cells: list[Any]) -> str | None:
    """The cell that failed, by its number and the statement that failed in it."""
    lines = [line for line in map(failing_line, cells) if line]
    if not (lines and execution.current):
        return execution.current
    return f"{execution.current.partition(': ')[0]}: {lines[-1]}"


def _death(execution: Execution, raised: Exception | None) -> Reason | None:
    """What ended the kernel, if that is what raised."""
    died = isinstance(raised, PapermillExecutionError) and raised.ename == DIED
    if died or (raised and execution.watch.reason):
        why = execution.watch.why()
        printed = tail(execution.log) if why.status == "failed" else ""
        return Reason(why.status, f"{why.message}\n{printed}", why.hint)
    return None


def _failure(
    execution: Execution, raised: Exception | None, cells: list[Any], reported: Reported
) -> Reason | None:
    """What failed while the kernel lived; None if the lesson passed."""
    hint = reported.failed[-1]["detail"] if reported.failed else ""
    done, planned = len(execution.cell_seconds), execution.cells
    if isinstance(raised, PapermillExecutionError):
        said = f"{raised.ename}: {raised.evalue}"
        return Reason("failed", said.removesuffix(hint).rstrip(": "), hint)
    if raised:
        said = f"{type(raised).__name__}: {raised}\n{tail(execution.log)}"
        return Reason("failed", f"The lesson could not be executed. {said}", hint)
    if reported.failed:
        return Reason("failed", f"Checkpoint {reported.failed[-1]['name']!r} did not pass.", hint)
    if execution.meter.where:
        return _flooded(execution.meter)
    if done < planned:
        return Reason("failed", f"The lesson ended itself after {done} of {planned} code cells.")
    if not any(_teaches(cell) for cell in cells):
        return Reason("failed", "No code cell was executed: the lesson produced nothing.")
    return _unsolved(execution.solved, reported)


def _unsolved(solved: list[str], reported: Reported) -> Reason | None:
    """The first exercise that its own solution, put into the lesson, does not solve."""
    for id in solved:
        status = reported.exercises.get(id, "not checked")
        if status != "solved":
            said = f"Exercise {id} is {status!r} with its own solution. {reported.said.get(id, '')}"
            return Reason("failed", said.strip(), f"Look at solutions/lesson_{id[:2]}.py.")
    return None


def _flooded(meter: Meter) -> Reason:
    total, limit = meter.total / 1e6, meter.limit / 1e6
    said = f"The cell put out {total:.0f} MB; only the first {limit:g} MB are kept."
    return Reason("failed", said, "Print a summary; write what is long to a file.")


def tail(log: Path) -> str:
    """The last lines that the kernel's process printed: what a crash leaves."""
    try:
        return "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-3:])
    except OSError:
        return ""


def _teaches(cell: Any) -> bool:
    tags = set(cell.metadata.get("tags", []))
    return bool(cell.get("execution_count")) and not tags & SETTINGS


def shorten(text: str) -> str:
    """The text without colour codes, cut where nobody would read on."""
    plain = ANSI.sub("", text).strip()
    return plain if len(plain) <= LONGEST else plain[: LONGEST - 4].rstrip() + " ..."
