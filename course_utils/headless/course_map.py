"""The map of the course, read from the lessons themselves, so that it is never out of date."""

import json
import re
from dataclasses import dataclass
from pathlib import Path

from course_utils.display import as_html, publish
from course_utils.headless import lessons

CELL = "padding:0.3em 0.75em;text-align:{align};vertical-align:top;font-weight:{weight}"
HEADERS = (("lesson", "left"), ("to read and try", "right"), ("needs", "left"))


@dataclass(frozen=True)
class Described:
    """What the first cell of a lesson says of it.

    Attributes:
        name: file name without suffix.
        title: "01 · The training loop".
        minutes: estimate of the time to read and try it, None if it names none.
        needs: what comes before it, one sentence.
    """

    name: str
    title: str
    minutes: int | None
    needs: str


def described(folder: Path | None = None) -> list[Described]:
    """Every lesson of `folder` (default: notebooks/), in reading order."""
    found = lessons.find(folder or lessons.REPOSITORY / "notebooks")
    return [describe(path) for path in found.values()]


def describe(path: Path) -> Described:
    """Read the first cell of one lesson; what cannot be read is left open."""
    try:
        first = json.loads(path.read_text(encoding="utf-8"))["cells"][0]
        text = "".join(first["source"])
    except (OSError, ValueError, LookupError, TypeError):
        text = ""
    title = re.match(r"# (.+)", text)
    minutes = re.search(r"\*\*Time:\*\*\D*(\d+) minutes", text)
    needs = re.search(r"\*\*Needs:\*\*\s+([^.;]+)", text)
    return Described(
        path.stem,
        title[1].strip() if title else path.stem,
        int(minutes[1]) if minutes else None,
        " ".join(needs[1].split()) if needs else "",
    )


def show_map() -> list[Described]:
    """Show the lessons as a table with links, in a notebook that lies beside them."""
    found = described()
    rows = [(d.title, "" if d.minutes is None else f"{d.minutes} min", d.needs) for d in found]
    text = "\n".join(f"{title}  ({time}; needs: {needs})" for title, time, needs in rows)
    head = "".join(_cell("th", as_html(name), align) for name, align in HEADERS)
    body = "".join(
        f"<tr>{_link(lesson)}{_cell('td', as_html(row[1]), 'right')}{_cell('td', as_html(row[2]))}</tr>"
        for lesson, row in zip(found, rows, strict=True)
    )
    publish(text, f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>")
    return found


def _link(lesson: Described) -> str:
    link = f'<a href="{as_html(lesson.name)}.ipynb">{as_html(lesson.title)}</a>'
    return _cell('th scope="row"', link)


def _cell(tag: str, content: str, align: str = "left") -> str:
    scope = ' scope="col"' if tag == "th" else ""
    style = CELL.format(align=align, weight="bold" if tag == "th" else "normal")
    return f'<{tag}{scope} align="{align}" style="{style}">{content}</{tag.split()[0]}>'
