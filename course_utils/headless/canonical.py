"""Notebooks in their committed form: `python -m course_utils.headless.canonical --fix`."""

import argparse
import os
import sys
from pathlib import Path

from course_utils.atomic import write_atomically
from course_utils.headless import lessons
from course_utils.headless.errors import UsageError
from course_utils.headless.form import canonical, problems
from course_utils.headless.navigation import complete, titles
from course_utils.headless.stop import Stop


def check(paths: list[Path], folder: Path) -> int:
    """Print each notebook that is not in committed form, and why; 1 if there is one."""
    bad = 0
    known = titles(folder)
    for path in paths:
        text = path.read_text(encoding="utf-8")
        found = problems(text) or _incomplete(text, path, known)
        if found:
            more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
            print(f"{path}: {found[0]}{more}")
            bad += 1
    if bad:
        print(f"{bad} of {len(paths)} notebooks are not in committed form: make notebooks")
    return int(bad > 0)


def fix(paths: list[Path], refresh: list[str], folder: Path) -> int:
    """Bring notebooks into committed form, those to refresh with new kept outputs."""
    stop = Stop()
    stop.listen()
    chosen = lessons.choose(lessons.find(folder), refresh) if refresh else []
    for lesson in chosen:
        from course_utils.headless.refresh import refreshed  # papermill: a second to import

        print(f"{lesson.path}: executing ...", flush=True)
        write_atomically(lesson.path, canonical(refreshed(lesson, stop)))
        print(f"{lesson.path}: outputs refreshed")
    known = titles(folder)
    return sum(_fix(path, known) for path in paths) and 1


def _incomplete(text: str, path: Path, known: dict[str, str]) -> list[str]:
    whole = canonical(complete(text, path, known)) == canonical(text)
    return [] if whole else ["links to other lessons, or the cell that looks for the course"]


def _fix(path: Path, known: dict[str, str]) -> bool:
    old = path.read_text(encoding="utf-8")
    try:
        new = canonical(complete(old, path, known))
    except ValueError as error:
        print(f"{path}: {error}")
        return True
    if new != old:
        write_atomically(path, new)
        print(f"{path}: brought into committed form")
    for problem in problems(new):
        print(f"{path}: {problem}")
    return False


def main(arguments: list[str] | None = None) -> int:
    """Check or fix; returns the exit status."""
    parser = argparse.ArgumentParser("python -m course_utils.headless.canonical")
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--check", action="store_true", help="list what is not in form; exit 1")
    action.add_argument("--fix", action="store_true", help="bring all into committed form")
    parser.add_argument("--refresh", default=os.environ.get("REFRESH", ""), metavar="LESSONS")
    parser.add_argument("--notebooks", type=Path, default=lessons.REPOSITORY / "notebooks")
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE")
    options = parser.parse_args(arguments)
    folder = options.notebooks.resolve()
    try:
        paths = options.files or list(lessons.find(folder).values())
        if options.check:
            return check(paths, folder)
        return fix(paths, options.refresh.replace(",", " ").split(), folder)
    except (UsageError, OSError, UnicodeDecodeError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
