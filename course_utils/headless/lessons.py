"""The lessons of a folder: find them in reading order, choose some, read their parameters."""

import ast
import difflib
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from course_utils.headless.errors import UsageError
from course_utils.headless.profiles import profiles

REPOSITORY = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Lesson:
    """A numbered notebook.

    Attributes:
        name: its file name without the suffix, "01_training_loop".
        path: absolute path of the notebook.
        defaults: what its parameters cell assigns, by name.
        problem: why it cannot be run at all, empty if it can.
        profiles: the profiles that it has, empty if its source alone doesn't tell.
    """

    name: str
    path: Path
    defaults: dict[str, Any]
    problem: str = ""
    profiles: tuple[str, ...] = ()


def find(folder: Path) -> dict[str, Path]:
    """Numbered notebooks of `folder`, by name, in reading order; UsageError without any."""
    paths = [path for path in folder.glob("*.ipynb") if re.match(r"\d+_", path.name)]
    if not paths:
        raise UsageError(f"No lessons (NN_name.ipynb) in {folder}.")
    return {path.stem: path for path in sorted(paths, key=lambda path: (_number(path.stem), path))}


def choose(
    lessons: dict[str, Path], wanted: list[str], keep_unreadable: bool = False
) -> list[Lesson]:
    """The lessons whose number ("01", "1") or name is wanted; all of them if none is.

    Raises:
        UsageError: one is unknown, or its notebook has no usable parameters cell; with
            `keep_unreadable` such a lesson is chosen as well, with its `problem`.
    """
    chosen = {name for text in wanted for name in _matches(lessons, text)} or set(lessons)
    reader = _read_or_note if keep_unreadable else read
    return [reader(path) for name, path in lessons.items() if name in chosen]


def _read_or_note(path: Path) -> Lesson:
    try:
        return read(path)
    except UsageError as error:
        return Lesson(path.stem, path, {}, str(error))


def _matches(lessons: dict[str, Path], text: str) -> list[str]:
    name = Path(text).name.removesuffix(".ipynb")
    found = [n for n in lessons if n == name or (name.isdecimal() and _number(n) == int(name))]
    if not found:
        guess = did_you_mean(name, lessons)
        raise UsageError(f"Unknown lesson {text!r}.{guess} Lessons: {', '.join(lessons)}.")
    return found


def _number(name: str) -> int:
    return int(name.split("_")[0])


def did_you_mean(name: str, known: Any) -> str:
    """' Did you mean X?' when one of `known` is close to `name`, else nothing."""
    folded = {other.casefold(): other for other in known}
    close = difflib.get_close_matches(name.casefold(), folded, n=1)
    return f" Did you mean {folded[close[0]]}?" if close else ""


def read(path: Path) -> Lesson:
    """The lesson in `path`; UsageError unless it is a notebook with one parameters cell."""
    try:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        tagged = [c for c in cells if "parameters" in c.get("metadata", {}).get("tags", [])]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(f"{path} is not a readable notebook: {error!r}.") from error
    if len(tagged) != 1:
        raise UsageError(
            f"{path.stem} has {len(tagged)} cells tagged 'parameters'; a lesson needs exactly one."
        )
    defaults = _assigned("".join(tagged[0]["source"]), path.stem)
    return Lesson(path.stem, path, defaults, profiles=profiles(cells))


def _assigned(source: str, name: str) -> dict[str, Any]:
    # papermill.inspect_notebook reads line by line: it drops a line with two "=" signs and
    # ends a value at the first "#", also inside a string. The parser makes neither mistake.
    try:
        return dict(_assignment(node) for node in ast.parse(source).body)
    except (SyntaxError, ValueError, AttributeError) as error:
        raise UsageError(
            f"{name}: the parameters cell must hold plain NAME = literal lines ({error})."
        ) from error


def _assignment(node: Any) -> tuple[str, Any]:
    (target,) = node.targets if isinstance(node, ast.Assign) else [node.target]
    return target.id, ast.literal_eval(node.value)
