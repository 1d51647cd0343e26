"""The entry of one lesson in results.json."""

import re
from typing import Any

from papermill.exceptions import PapermillExecutionError

from course_utils.headless.collect import collect
from course_utils.headless.engine import Execution

ANSI = re.compile(r"\x1b\[[0-9;]*m")
LONGEST = 600
# Cells that hold parameters teach nothing: a lesson of these alone has not run.
SETTINGS = {"parameters", "injected-parameters"}


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


def judge(execution: Execution, raised: Exception | None) -> dict[str, Any]:
    """Status, error, times and reports of an execution that is over."""
    cells = execution.notebook.cells if execution.notebook else []
    reported = collect(cells)
    status, message, hint = _verdict(execution, raised, cells, reported.failed)
    passed = status == "passed"
    return {
        "status": status,
        "cell_seconds": execution.cell_seconds,
        "peak_memory_mb": round(execution.watch.peak_bytes / 2**20, 1) or None,
        "error": None if passed else {"cell": execution.current, "message": message, "hint": hint},
        "checkpoints": reported.checkpoints,
        "results": reported.results,
    }


def _verdict(
    execution: Execution, raised: Exception | None, cells: list[Any], failed: list[dict[str, Any]]
) -> tuple[str, str, str]:
    hint = failed[-1]["detail"] if failed else ""
    if execution.watch.reason and raised:
        why = execution.watch.reason
        return why.status, why.message, why.hint
    if isinstance(raised, PapermillExecutionError):
        if raised.ename == "DeadKernelError":
            why = execution.watch.why()
            return why.status, why.message, why.hint
        return "failed", shorten(f"{raised.ename}: {raised.evalue}"), hint
    if raised:
        return "failed", shorten(f"{type(raised).__name__}: {raised}"), hint
    if failed:
        return "failed", f"Checkpoint {failed[-1]['name']!r} did not pass.", hint
    if len(execution.cell_seconds) < execution.cells:
        ran = f"{len(execution.cell_seconds)} of {execution.cells}"
        return "failed", f"The lesson ended itself after {ran} code cells.", ""
    if not any(_teaches(cell) for cell in cells):
        return "failed", "No code cell was executed: the lesson produced nothing.", ""
    return "passed", "", ""


def _teaches(cell: Any) -> bool:
    tags = set(cell.metadata.get("tags", []))
    return bool(cell.get("execution_count")) and not tags & SETTINGS


def shorten(text: str) -> str:
    """The text without colour codes, cut where nobody would read on."""
    plain = ANSI.sub("", text).strip()
    return plain if len(plain) <= LONGEST else plain[: LONGEST - 4].rstrip() + " ..."
