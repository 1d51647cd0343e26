"""index.html of a run, one page that stands alone: `python -m course_utils.headless.report`."""

import argparse
import datetime
import sys
from pathlib import Path
from typing import Any

from course_utils.atomic import write_atomically
from course_utils.display import format_value
from course_utils.headless import figures, lessons, repeats, resume
from course_utils.headless.errors import UsageError
from course_utils.headless.executed import look
from course_utils.headless.words import SIGNS, environment_rows, headline, seconds_text, when

TEMPLATES = Path(__file__).parent / "templates"


def render(results: dict[str, Any], folder: Path) -> str:
    """The page of what results.json holds; `folder` has the executed notebooks."""
    longest = max((entry["seconds"] or 0 for entry in results["notebooks"]), default=0)
    shown = [_lesson(entry, folder, longest) for entry in results["notebooks"]]
    return page(
        "report.html.j2",
        lessons=shown,
        totals=_totals(results),
        failures=[lesson for lesson in shown if lesson["error"]],
        problems=results.get("problems", {}),
        environment=environment_rows(results["environment"]),
        headline=headline(results["environment"]),
        parameters={name: repr(value) for name, value in results["parameters"].items()},
        repeat=results["environment"].get("repeat", 1),
        started=when(results["environment"]["started"]),
        resumed=[when(time) for time in results["environment"].get("resumed", ())],
        name=folder.name,
    )


def page(template: str, **context: Any) -> str:
    """A page of this package's templates; everything put into it is escaped."""
    import jinja2  # a tenth of a second: only where a page is made

    loader = jinja2.FileSystemLoader(TEMPLATES)
    environment = jinja2.Environment(
        loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    environment.undefined = jinja2.StrictUndefined
    made = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    environment.globals.update(signs=SIGNS, made=when(made), value=format_value)
    return environment.get_template(template).render(context)


def _lesson(entry: dict[str, Any], folder: Path, longest: float) -> dict[str, Any]:
    attempts = entry.get("repeats") or [entry]
    name = repeats.file_name(entry["name"], repeats.shown(attempts) + 1)
    executed = look(folder / f"{name}.ipynb")
    exercises = list(entry["exercises"].values())
    return {
        **entry,
        "title": executed.title or entry["name"],
        "page": _there(folder, f"{name}.html"),
        "notebook": _there(folder, f"{name}.ipynb"),
        "plots": executed.plots,
        "groups": figures.groups(entry["results"]),
        "passed": sum(checkpoint["passed"] for checkpoint in entry["checkpoints"]),
        "solved": sum(_solved(status) for status in exercises),
        "seconds_text": seconds_text(entry["seconds"]),
        "seconds_spread": figures.spread([a["seconds"] for a in attempts]),
        "share": (entry["seconds"] or 0) / longest if longest else 0,
        "attempts": [_attempt(entry["name"], a, n, folder) for n, a in enumerate(attempts, 1)],
        "interrupted": entry.get("interrupted", 0),
    }


def _attempt(name: str, attempt: dict[str, Any], number: int, folder: Path) -> dict[str, Any]:
    where = _there(folder, f"{repeats.file_name(name, number)}.html")
    return {**attempt, "page": where, "seconds_text": seconds_text(attempt["seconds"])}


def _there(folder: Path, name: str) -> str | None:
    return name if (folder / name).is_file() else None


def _solved(status: Any) -> bool:
    return (status.get("status") if isinstance(status, dict) else status) in ("passed", "solved")


def _totals(results: dict[str, Any]) -> dict[str, Any]:
    entries = results["notebooks"]
    checkpoints = [c["passed"] for entry in entries for c in entry["checkpoints"]]
    exercises = [status for entry in entries for status in entry["exercises"].values()]
    peak = max((entry["peak_memory_mb"] or 0 for entry in entries), default=0)
    return {
        "lessons": len(entries),
        "passed": sum(entry["status"] == "passed" for entry in entries),
        "over": all(entry["status"] in repeats.DONE for entry in entries),
        "checkpoints": f"{sum(checkpoints)} of {len(checkpoints)}",
        "exercises": f"{sum(map(_solved, exercises))} of {len(exercises)}" if exercises else "",
        "seconds": seconds_text(sum(entry["seconds"] or 0 for entry in entries)),
        "peak": f"{peak:,.0f} MB" if peak else "not measured",
    }


def main(arguments: list[str] | None = None) -> int:
    """Write index.html of a run anew from what its folder holds; returns the exit status."""
    parser = argparse.ArgumentParser("python -m course_utils.headless.report", description=__doc__)
    latest = lessons.REPOSITORY / "runs" / "latest"
    parser.add_argument("run", nargs="?", type=Path, default=latest, help="default: the newest")
    folder = parser.parse_args(arguments).run.resolve()
    try:
        write_atomically(folder / "index.html", render(resume.load(folder), folder))
    except (UsageError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(folder / "index.html")
    return 0


if __name__ == "__main__":
    sys.exit(main())
