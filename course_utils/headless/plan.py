"""How long the lessons take: `python -m course_utils.headless.plan [runs/x]`.

Minutes to read and try are the estimates that each lesson gives of itself; the time of the
machine is what a run measured.
"""

import argparse
import sys
from pathlib import Path
from typing import Any

from course_utils.headless import lessons, resume
from course_utils.headless.course_map import described
from course_utils.headless.errors import UsageError
from course_utils.headless.summary import aligned
from course_utils.headless.words import headline, seconds_text, when


def table(run: Path, notebooks: Path) -> list[str]:
    """The plan as lines of text; UsageError for a folder without a run."""
    results = resume.load(run)
    seconds = {entry["name"]: entry["seconds"] for entry in results["notebooks"]}
    found = described(notebooks)
    rows = [
        (d.title, f"{d.minutes} min" if d.minutes else "-", seconds_text(seconds.get(d.name)))
        for d in found
    ]
    minutes = sum(d.minutes or 0 for d in found)
    machine = seconds_text(sum(seconds.get(d.name) or 0 for d in found))
    total = ("together", f"{minutes // 60} h {minutes % 60:02d} min", machine)
    header = ("lesson", "read and try (estimate)", "machine (measured)")
    facts = [when(results["environment"]["started"]), *headline(results["environment"])]
    measured = f"Machine: {run.resolve().name}, {' · '.join(facts)}."
    return [*aligned([header, *rows, total], left=(0,)), "", measured, *_given(results)]


def _given(results: dict[str, Any]) -> list[str]:
    """One line if the run was not as a class starts it: its seconds are then of other work."""
    turned = [f"{name}={value}" for name, value in results["parameters"].items()]
    if not turned:
        return []
    return [f"It ran with {', '.join(turned)}: a class that doesn't will need other times."]


def main(arguments: list[str] | None = None) -> int:
    """Print the plan; returns the exit status."""
    parser = argparse.ArgumentParser("python -m course_utils.headless.plan", description=__doc__)
    latest = lessons.REPOSITORY / "runs" / "latest"
    parser.add_argument("run", nargs="?", type=Path, default=latest, help="default: the newest")
    options = parser.parse_args(arguments)
    try:
        print("\n".join(table(options.run, lessons.REPOSITORY / "notebooks")))
    except UsageError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
