"""What every lesson has alike: links to its neighbours, and the cell that looks for the course."""

import json
from pathlib import Path
from typing import Any

from course_utils.headless.course_map import described
from course_utils.headless.form import load

MARK = "**Lessons:** "
TAG = "find-the-course"
TAKE_ALONG = "## What you take along"
FIND_THE_COURSE = """\
# Everything below comes from the course's own package. Without it, this cell says what to do.
try:
    import course_utils  # noqa: F401
except ModuleNotFoundError:
    raise ModuleNotFoundError(
        "This notebook runs in a Python that doesn't know the course. In a terminal, go to the "
        "course's folder (the one with the Makefile) and run `make lab`: it installs what is missing "
        "and opens JupyterLab. If you have no such folder, `git clone` the course first."
    ) from None
""".rstrip()


def complete(text: str, path: Path, titles: dict[str, str]) -> str:
    """The notebook `text` with its links and the cell that looks for the course put in.

    Args:
        text: a notebook of format 4; ValueError else.
        path: where it lies; its name says which lesson it is.
        titles: the titles of all lessons by their names, in reading order, as `titles` gives.
    """
    if path.stem not in titles:
        return text
    notebook = load(text)
    paragraph = _links(path.stem, titles)
    cells = [cell for cell in notebook["cells"] if TAG not in _tags(cell)]
    for cell in cells:
        if cell is cells[0] or TAKE_ALONG in cell["source"].splitlines():
            cell["source"] = _with_paragraph(cell["source"], paragraph)
    after = next((i for i, cell in enumerate(cells, 1) if "parameters" in _tags(cell)), None)
    if after is not None:
        cells.insert(after, _finder())
    notebook["cells"] = cells
    return json.dumps(notebook)


def titles(folder: Path) -> dict[str, str]:
    """The title of each lesson in `folder`, such as "05 · shard_map", by its name, in order."""
    return {lesson.name: lesson.title.split(":")[0] for lesson in described(folder)}


def _links(name: str, titles: dict[str, str]) -> str:
    names = list(titles)
    here = names.index(name)
    if here == 0:
        return MARK + " | ".join(f"[{titles[other]}]({other}.ipynb)" for other in names[1:])
    before, after = names[here - 1], names[here + 1 : here + 2]
    parts = [f"[← {titles[before]}]({before}.ipynb)"]
    parts += [f"[all]({names[0]}.ipynb)"] if here > 1 else []
    parts += [f"[{titles[other]} →]({other}.ipynb)" for other in after]
    return MARK + " | ".join(parts)


def _with_paragraph(source: str, paragraph: str) -> str:
    kept = [part for part in source.strip("\n").split("\n\n") if not part.startswith(MARK)]
    return "\n\n".join([*kept, paragraph])


def _tags(cell: dict[str, Any]) -> list[str]:
    return cell.get("metadata", {}).get("tags", [])


def _finder() -> dict[str, Any]:
    cell = {"cell_type": "code", "metadata": {"tags": [TAG]}, "source": FIND_THE_COURSE}
    return cell | {"id": TAG, "outputs": [], "execution_count": None}
