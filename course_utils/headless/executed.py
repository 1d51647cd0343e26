"""What the report shows of an executed notebook: its title and its plots, made small."""

import base64
import functools
import io
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

WIDEST = 560  # pixels of a thumbnail: twice what the page gives it, for sharp screens
COLOURS = 64


@dataclass(frozen=True)
class Plot:
    """A thumbnail.

    Attributes:
        cell: id of the cell that made the plot.
        alt: what the plot shows, in words.
        image: the thumbnail as a data URI.
        width, height: its size on the page, in CSS pixels.
    """

    cell: str
    alt: str
    image: str
    width: int
    height: int


@dataclass(frozen=True)
class Executed:
    """Title ("01 · The training loop", empty if there is none) and plots of a notebook."""

    title: str = ""
    plots: list[Plot] = field(default_factory=list)


def look(path: Path) -> Executed:
    """Read the executed notebook in `path`; empty if there is none that can be read."""
    try:
        return _read(path, path.stat().st_mtime_ns)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return Executed()


@functools.lru_cache(maxsize=256)  # the report is written anew after every lesson
def _read(path: Path, _changed: int) -> Executed:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    first = "".join(cells[0]["source"]).splitlines() if cells else []
    title = first[0].removeprefix("# ") if first and first[0].startswith("# ") else ""
    found = (_plot(cell, output) for cell in cells for output in cell.get("outputs", ()))
    return Executed(title, [plot for plot in found if plot])


def _plot(cell: dict[str, Any], output: dict[str, Any]) -> Plot | None:
    encoded = output.get("data", {}).get("image/png")
    if not encoded:
        return None
    known = output.get("metadata", {}).get("image/png", {})
    try:
        small, width, height = _thumbnail(base64.b64decode("".join(encoded)))
    except (OSError, ValueError):  # a lesson may show what is no image
        return None
    alt = str(known.get("alt") or "A plot of this lesson")
    image = "data:image/png;base64," + base64.b64encode(small).decode()
    return Plot(cell.get("id", ""), alt, image, width // 2, height // 2)


def _thumbnail(png: bytes) -> tuple[bytes, int, int]:
    from PIL import Image  # comes with matplotlib; only where there are plots

    image = Image.open(io.BytesIO(png)).convert("RGB")
    image.thumbnail((WIDEST, WIDEST), Image.Resampling.LANCZOS)
    file = io.BytesIO()
    image.quantize(COLOURS).save(file, "PNG", optimize=True)
    return file.getvalue(), *image.size
