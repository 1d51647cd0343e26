"""What two runs' comparison says, and the lines of text that say it."""

from pathlib import Path
from typing import Any

from course_utils.display import format_value, one_line
from course_utils.headless import differences, resume
from course_utils.headless.errors import UsageError
from course_utils.headless.summary import aligned
from course_utils.headless.words import headline, when


def compared(a: Path, b: Path, threshold: float) -> dict[str, Any]:
    """What both renderings of a comparison show; UsageError for a folder without a run."""
    runs = [resume.load(folder) for folder in (a, b)]
    ran = [[entry["name"] for entry in run["notebooks"]] for run in runs]
    if not set(ran[0]) & set(ran[1]):
        raise UsageError(
            f"Nothing could be compared, the runs have no lesson in common: "
            f"A has {', '.join(ran[0])}; B has {', '.join(ran[1])}."
        )
    profiles = [differences.profile(run) for run in runs]
    changes = differences.figures(*runs, threshold)
    statuses = list(differences.statuses(*runs))
    return {
        "a": _run(a, runs[0]),
        "b": _run(b, runs[1]),
        "environment": differences.environment(*runs),
        "statuses": statuses,
        "changes": changes,
        "regressions": sum(s[3] for s in statuses) + sum(c.regression for c in changes),
        "beyond": sum(c.verdict in ("better", "worse", "changed") for c in changes),
        "assumed": any(c.assumed for c in changes),
        "threshold": threshold,
        "unlike": _unlike(*runs),
        "profiles": profiles if profiles[0] != profiles[1] else [],
        "missing": [name for name in ran[0] if name not in ran[1]],
    }


def _unlike(a: dict[str, Any], b: dict[str, Any]) -> list[str]:
    """What differs between the runs and would explain any change of a figure."""
    machine = {"cpu", "cores", "device_kind", "device_count", "dataset"}
    causes = machine | a["parameters"].keys() | b["parameters"].keys()
    return [name for name, *_ in differences.environment(a, b) if name in causes]


def _run(folder: Path, results: dict[str, Any]) -> dict[str, str]:
    facts = [when(results["environment"].get("started", "")), *headline(results["environment"])]
    return {"name": folder.resolve().name, "facts": " · ".join(filter(None, facts))}


def text(found: dict[str, Any]) -> list[str]:
    """The comparison as lines of plain text."""
    lines = [f"A  {found['a']['name']}  {found['a']['facts']}"]
    lines += [f"B  {found['b']['name']}  {found['b']['facts']}", "", conclusion(found)]
    if found["unlike"]:
        lines += [f"They ran with different {', '.join(found['unlike'])}: that alone may be why."]
    if found["profiles"]:
        lines += [said_of_profiles(found["profiles"])]
    if found["environment"]:
        rows = [(name, _shown(x), _shown(y)) for name, x, y in found["environment"]]
        lines += ["", *aligned([("environment", "A", "B"), *rows], left=range(3))]
    if found["statuses"]:
        rows = [(*status[:3], "REGRESSION" if status[3] else "") for status in found["statuses"]]
        lines += ["", *aligned([("status", "A", "B", ""), *rows], left=range(4))]
    rows = [_row(change) for change in found["changes"]]
    header = ("lesson", "figure", "A", "B", "B/A", "spread", "verdict")
    lines += ["", *aligned([header, *rows], left=(0, 1, 6))]
    if found["assumed"]:
        lines += [
            "",
            "~ a lesson ran once, so its spread is a guess: REPEAT=3 make run measures it.",
        ]
    return lines


def said_of_profiles(profiles: list[str]) -> str:
    """Why times are left out where the runs' profiles differ."""
    a, b = profiles
    return f"A ran in the profile {a}, B in {b}: their times, rates and memory are not compared."


def conclusion(found: dict[str, Any]) -> str:
    """The comparison in one sentence, and a second for lessons that B lacks."""
    missing = found["missing"]
    lacks = f" Not compared, since B lacks {', '.join(missing)}." if missing else ""
    if found["regressions"]:
        s = "s" * (found["regressions"] > 1)
        return f"{found['regressions']} regression{s} beyond {found['threshold']:.0%}.{lacks}"
    if found["beyond"] or found["statuses"]:
        return (
            f"No regression beyond {found['threshold']:.0%}; what changed is marked below.{lacks}"
        )
    return "Equal: no figure differs beyond its spread, and no status changed."


def _row(change: differences.Change) -> tuple[str, ...]:
    spread = f"{'~' * change.assumed}{change.spread:.0%}" if change.ratio is not None else ""
    verdict = change.verdict + ("  REGRESSION" if change.regression else "")
    ratio = "" if change.ratio is None else f"{change.ratio:.2f}"
    values = [_shown(x, change.unit) for x in (change.a, change.b)]
    return (change.lesson, change.name, *values, ratio, spread, verdict)


def _shown(value: Any, unit: str = "") -> str:
    return "-" if value is None else one_line(f"{format_value(value)} {unit}")
