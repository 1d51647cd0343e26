"""What `course_utils` adds to the imports that every lesson needs anyway."""

import ast
import json
from pathlib import Path
from typing import Any

from benchmarks.figures import Rounds, claim, samples
from benchmarks.group import Group
from benchmarks.tasks.imports import ADDED, ALL
from benchmarks.variant import ROOT, Variant

TASK = "benchmarks.tasks.imports:Imports"


def imported_by(notebook: Path) -> set[str]:
    """Modules of course_utils that a lesson's cells import."""
    found: set[str] = set()
    for cell in json.loads(notebook.read_text())["cells"]:
        if cell["cell_type"] == "code":
            found |= _modules("".join(cell["source"]))
    return found


def _modules(code: str) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            # `from course_utils import fashion_mnist` names a module, other names are in one.
            packages = [f"{node.module}.{alias.name}" for alias in node.names]
            found |= set(packages) if node.module == "course_utils" else {node.module}
    return {name for name in found if name.split(".")[0] == "course_utils"}


def modules_of(lessons: str) -> tuple[str, ...]:
    """Modules of course_utils that the lessons of a pattern of file names import."""
    notebooks = sorted((ROOT / "notebooks").glob(lessons))
    return tuple(sorted(set().union(*map(imported_by, notebooks))))


def claims(rounds: Rounds) -> list[Any]:
    """What an import may cost."""
    text = "all that lessons import of course_utils adds so many ms"
    return [claim(text, samples(rounds, "all-lessons", ADDED), "<=", 50)]


GROUP = Group(
    name="imports",
    title="Imports",
    how="A new process each time, which imports JAX, Optax and Matplotlib first.",
    variants=(
        Variant("alone", "jax, optax and matplotlib alone", TASK),
        Variant(
            "lesson-01",
            "and what lesson 01 imports of course_utils",
            TASK,
            modules_of("01_*.ipynb"),
        ),
        Variant("all-lessons", "and what any lesson imports of it", TASK, modules_of("*.ipynb")),
    ),
    columns=(ALL, ADDED),
    rounds=15,
    quick_rounds=5,
    claims=claims,
    prepared=False,
    fresh=True,
)
