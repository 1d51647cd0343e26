"""The last lines of a run: a table, the failures in words, where to look."""

from collections.abc import Collection
from typing import Any

from course_utils.headless.folder import Folder

HEADERS = ("lesson", "status", "seconds", "checkpoints", "peak MB")


def table(entries: list[dict[str, Any]]) -> list[str]:
    """The lessons as lines of aligned plain text; exercises where one was attempted."""
    rows = [HEADERS, *map(_row, entries)]
    attempted = {status for entry in entries for status in entry["exercises"].values()}
    if attempted - {"not attempted"}:
        column = ["exercises", *map(_solved, entries)]
        rows = [(*row[:-1], cell, row[-1]) for row, cell in zip(rows, column, strict=True)]
    return aligned(rows, left=(0, 1))


def _solved(entry: dict[str, Any]) -> str:
    statuses = list(entry["exercises"].values())
    return f"{statuses.count('solved')}/{len(statuses)}" if statuses else "-"


def aligned(rows: list[tuple[str, ...]], left: Collection[int]) -> list[str]:
    """Rows as lines of plain text, the columns in `left` aligned left, the others right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = zip(row, widths, strict=True)
        texts = [t.ljust(w) if i in left else t.rjust(w) for i, (t, w) in enumerate(cells)]
        lines.append("  ".join(texts).rstrip())
    return lines


def _row(entry: dict[str, Any]) -> tuple[str, ...]:
    passed = sum(checkpoint["passed"] for checkpoint in entry["checkpoints"])
    return (
        entry["name"],
        entry["status"],
        "-" if entry["seconds"] is None else f"{entry['seconds']:.1f}",
        f"{passed}/{len(entry['checkpoints'])}",
        "-" if entry["peak_memory_mb"] is None else f"{entry['peak_memory_mb']:.0f}",
    )


def failures(entries: list[dict[str, Any]]) -> list[str]:
    """For each lesson with an error: the cell, the message, the hint."""
    lines = []
    for entry in entries:
        if entry["error"]:
            where = f", {entry['error']['cell']}" if entry["error"]["cell"] else ""
            lines += ["", f"{entry['name']} {entry['status']}{where}"]
            lines += [f"  {line}" for line in entry["error"]["message"].splitlines()]
            hint = entry["error"]["hint"]
            lines += [f"  Hint: {hint}"] if hint else []
    return lines


def where(folder: Folder) -> list[str]:
    """Where the results are and how to open them; what could not be written."""
    lost = [f"Could not write {path}: {why}" for path, why in folder.problems.items()]
    page = folder.path / "index.html"
    return ["", f"Results: {folder.path}", f"Open {page} in a browser.", *lost]


def exit_status(entries: list[dict[str, Any]], folder: Folder) -> int:
    """0 when every lesson passed and everything was written, else 1."""
    return int(bool(folder.problems) or any(entry["status"] != "passed" for entry in entries))
