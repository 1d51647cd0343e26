"""The one form in which a notebook is committed: a pure function of its content."""

import hashlib
import json
import re
from typing import Any

import nbformat

MARKED = re.compile(r"^\s*#\s*NBVAL_CHECK_OUTPUT", re.MULTILINE)
VALID_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def canonical(text: str) -> str:
    """The notebook `text` in its committed form.

    nbformat 4.5 with sorted keys, one space of indent and a final newline; fixed metadata,
    of a cell its tags only; cell ids are kept where they are valid and unique, and made
    from the source elsewhere; outputs only where `# NBVAL_CHECK_OUTPUT` has nbval compare
    them, with the execution count that Run All in a new kernel gives.

    Raises:
        ValueError: `text` is not a notebook of format 4.
    """
    try:
        cells = _cells(load(text)["cells"])
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not a notebook: {error!r}") from error
    notebook = {"cells": cells, "metadata": METADATA, "nbformat": 4, "nbformat_minor": 5}
    return nbformat.v4.writes(nbformat.from_dict(notebook)).rstrip("\n") + "\n"


def load(text: str) -> dict[str, Any]:
    """The notebook as dicts, multi-line texts joined; ValueError if not of format 4."""
    version = json.loads(text)["nbformat"]
    if version != 4:
        raise ValueError(f"nbformat {version} instead of 4")
    return nbformat.v4.reads(text)


def _cells(cells: list[dict[str, Any]]) -> list[dict[str, Any]]:
    clean, ids, count = [], set(), 0
    for cell in cells:
        new = _cell(cell)
        new["id"] = _id(cell, new["source"], ids)
        if new["cell_type"] == "code":
            count += bool(new["source"])
            _outputs(cell, new, count)
        clean.append(new)
    return clean


def _cell(cell: dict[str, Any]) -> dict[str, Any]:
    lines = [line.rstrip() for line in cell["source"].replace("\r\n", "\n").split("\n")]
    tags = list(dict.fromkeys(cell.get("metadata", {}).get("tags", [])))
    clean = {
        "cell_type": cell["cell_type"],
        "metadata": {"tags": tags} if tags else {},
        "source": "\n".join(lines).rstrip("\n"),
    }
    if cell.get("attachments"):  # images pasted into Markdown
        clean["attachments"] = cell["attachments"]
    return clean


def _id(cell: dict[str, Any], source: str, taken: set[str]) -> str:
    candidate, number = str(cell.get("id", "")), 0
    while not VALID_ID.fullmatch(candidate) or candidate in taken:
        candidate = hashlib.sha256(f"{number} {source}".encode()).hexdigest()[:8]
        number += 1
    taken.add(candidate)
    return candidate


def _outputs(cell: dict[str, Any], clean: dict[str, Any], count: int) -> None:
    kept = cell.get("outputs", []) if MARKED.search(clean["source"]) else []
    clean["outputs"] = kept
    clean["execution_count"] = count if kept else None
    for output in kept:
        if output["output_type"] == "execute_result":
            output["execution_count"] = count


def problems(text: str) -> list[str]:
    """What keeps the notebook `text` from being in committed form; empty if nothing does."""
    try:
        wanted = canonical(text)
    except ValueError as error:
        return [str(error)]
    found = _differences(load(text), load(wanted))
    if not found and text != wanted:
        found = ["order of keys, indent, escapes or final newline"]
    return found + _without_output(load(wanted))


def _differences(have: dict[str, Any], want: dict[str, Any]) -> list[str]:
    found = [f"{key} of the notebook" for key in want if key != "cells" and have[key] != want[key]]
    for number, (old, new) in enumerate(zip(have["cells"], want["cells"], strict=True), start=1):
        keys = (key for key in sorted({*old, *new}) if old.get(key) != new.get(key))
        found += [f"cell {number}: {key}" for key in keys]
    return found


def _without_output(notebook: dict[str, Any]) -> list[str]:
    return [
        f"cell {number}: marked NBVAL_CHECK_OUTPUT, but no output is kept (REFRESH makes it)"
        for number, cell in enumerate(notebook["cells"], start=1)
        if MARKED.search(cell["source"]) and cell["cell_type"] == "code" and not cell["outputs"]
    ]
