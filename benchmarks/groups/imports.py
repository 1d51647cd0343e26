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


def lesson(number: str, what: str) -> Variant:
    """Return the variant that imports as a lesson does."""
    label = f"and what lesson {number} imports of course_utils ({what})"
    return Variant(f"lesson-{number}", label, TASK, modules_of(f"{number}_*.ipynb"))


LESSONS = (
    lesson("01", "one device"),
    lesson("04", "several devices"),
    lesson("06", "the most modules"),
    lesson("08", "several devices"),
)


def claims(rounds: Rounds) -> list[Any]:
    """What the imports of the lesson that takes longest may cost."""
    found = [f for each in LESSONS if (f := samples(rounds, each.name, ADDED))]
    worst = max(found, key=lambda figure: figure["median"], default=None)
    text = "the lesson that takes longest to import course_utils spends so many ms on it"
    return [claim(text, worst, "<=", 50)]


GROUP = Group(
    name="imports",
    title="Imports",
    how="A new process each time, which imports JAX, Optax and Matplotlib first.",
    variants=(Variant("alone", "jax, optax and matplotlib alone", TASK), *LESSONS),
    columns=(ALL, ADDED),
    rounds=15,
    quick_rounds=3,
    claims=claims,
    fresh=True,
)
