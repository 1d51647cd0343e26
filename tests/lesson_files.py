"""The lessons as files: what tests of them share."""

import re
from pathlib import Path

import nbformat

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = ROOT / "notebooks"
LESSONS = sorted(path for path in NOTEBOOKS.glob("*.ipynb") if re.match(r"\d\d_", path.name))


def code_cells(lesson: Path) -> list[nbformat.NotebookNode]:
    """The code cells of a lesson, in order."""
    notebook = nbformat.read(lesson, as_version=4)
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def code_of(lesson: Path) -> str:
    """All the code of a lesson as one Python source."""
    return "\n\n".join(cell.source for cell in code_cells(lesson))


def in_test_profile(lesson: Path) -> nbformat.NotebookNode:
    """The lesson with PROFILE = "test" in its parameters cell."""
    notebook = nbformat.read(lesson, as_version=4)
    (cell,) = [c for c in notebook.cells if "parameters" in c.metadata.get("tags", [])]
    cell.source = cell.source.replace('PROFILE = "auto"', 'PROFILE = "test"')
    assert 'PROFILE = "test"' in cell.source
    return notebook
