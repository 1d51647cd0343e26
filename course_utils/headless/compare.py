"""Compare two runs: `python -m course_utils.headless.compare runs/A runs/B`.

Exit status: 0 no regression, 1 a regression beyond the threshold, 2 nothing could be compared.
Through `make compare` a 1 is a 2 as well: make has one status for every command that fails.
"""

import argparse
import os
import sys
from pathlib import Path
from typing import Any

from course_utils.atomic import write_atomically
from course_utils.headless import lessons
from course_utils.headless.comparison import compared, conclusion, said_of_profiles, text
from course_utils.headless.errors import UsageError
from course_utils.headless.report import page


def _fraction(given: str) -> float:
    """0.1 of "0.1" or of "10%"."""
    try:
        value = float(given.removesuffix("%")) / (100 if given.endswith("%") else 1)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 100:
        raise argparse.ArgumentTypeError(
            f"THRESHOLD is {given!r}; it takes a fraction such as 0.1, or 10%"
        )
    return value


def main(arguments: list[str] | None = None) -> int:
    """Print the comparison and write its page beside B's results; returns the exit status."""
    parser = argparse.ArgumentParser("python -m course_utils.headless.compare", description=__doc__)
    parser.add_argument("runs", nargs="*", type=Path, metavar="RUN", help="folders A and B")
    default = os.environ.get("THRESHOLD", "").strip() or "0.1"
    parser.add_argument(
        "--threshold", type=_fraction, default=default, help="0.1 or 10%% (default)"
    )
    parser.add_argument("--html", type=Path, help="where to write the page (default: in B)")
    options = parser.parse_args(arguments)
    try:
        a, b = map(_folder, options.runs or _from_make())
        found = compared(a, b, options.threshold)
    except (UsageError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    _say("\n".join(text(found)))
    where = options.html or b / f"compared-with-{a.resolve().name}.html"
    return _write(where, found) or int(found["regressions"] > 0)


def _from_make() -> list[Path]:
    given = [Path(os.environ[name]) for name in ("A", "B") if os.environ.get(name)]
    if len(given) != 2:
        raise UsageError("Name two runs: make compare A=runs/x B=runs/y.")
    return given


def _folder(path: Path) -> Path:
    """The folder, or the one of that name in runs/; UsageError if there is neither."""
    for place in (path, lessons.REPOSITORY / "runs" / path):
        if place.is_dir():
            return place
    raise UsageError(f"The folder {path} does not exist.")


def _page(found: dict[str, Any]) -> str:
    profiles = said_of_profiles(found["profiles"]) if found["profiles"] else ""
    return page("compare.html.j2", conclusion=conclusion(found), of_profiles=profiles, **found)


def _write(where: Path, found: dict[str, Any]) -> int:
    try:
        write_atomically(where, _page(found))
    except OSError as error:
        print(f"Could not write {where}: {error.strerror}", file=sys.stderr)
        return 2
    _say(f"\nOpen {where} in a browser.")
    return 0


def _say(lines: str) -> None:
    try:
        print(lines, flush=True)
    except BrokenPipeError:  # `| head`: the exit status still tells
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115


if __name__ == "__main__":
    sys.exit(main())
