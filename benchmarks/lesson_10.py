"""The recipe that lesson 10's ladder ends with, read from the lesson: what is timed is what is taught."""

import ast
import functools
import json
from typing import Any

from benchmarks.variant import ROOT

_NAMES = ("FULL_SIZES", "LESSON_01", "CHANGES")


@functools.cache
def constants() -> dict[str, Any]:
    """The lesson's FULL_SIZES, and as RECIPE its LESSON_01 with all CHANGES made, one after the other.

    Raises:
        LookupError: the lesson doesn't have these three, as literals, any more.
    """
    (notebook,) = (ROOT / "notebooks").glob("10_*.ipynb")
    return read(json.loads(notebook.read_text()))


def read(notebook: dict[str, Any]) -> dict[str, Any]:
    """The same, from a notebook that has been loaded."""
    found = {}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            found |= _assigned("".join(cell["source"]))
    if missing := set(_NAMES) - set(found):
        raise LookupError(f"lesson 10 no longer assigns {', '.join(sorted(missing))}")
    sizes = ast.literal_eval(found["FULL_SIZES"])
    changes = found["CHANGES"].replace("config.PEAK_RATE", str(sizes["PEAK_RATE"]))
    recipe = ast.literal_eval(found["LESSON_01"])
    for change in ast.literal_eval(changes).values():
        recipe |= change
    return sizes | {"RECIPE": recipe}


def _assigned(code: str) -> dict[str, str]:
    """The source of what a cell assigns to the names that are looked for."""
    assignments = [node for node in ast.parse(code).body if isinstance(node, ast.Assign)]
    return {
        node.targets[0].id: ast.unparse(node.value)
        for node in assignments
        if getattr(node.targets[0], "id", "") in _NAMES
    }
