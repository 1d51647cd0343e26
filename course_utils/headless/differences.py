"""What changed between two runs: facts, statuses, and figures beyond their spread."""

from collections.abc import Iterator
from typing import Any

from course_utils.headless.change import Change, change

NEVER_THE_SAME = ("started", "finished", "resumed", "git_dirty", "lesson_devices")


def environment(a: dict[str, Any], b: dict[str, Any]) -> list[tuple[str, Any, Any]]:
    """(fact, in A, in B) for every fact about environment or parameters that differs."""
    facts = [{**run["environment"], **run["parameters"]} for run in (a, b)]
    names = dict.fromkeys([*facts[0], *facts[1]])
    found = ((name, facts[0].get(name), facts[1].get(name)) for name in names)
    return [fact for fact in found if fact[1] != fact[2] and fact[0] not in NEVER_THE_SAME]


def statuses(a: dict[str, Any], b: dict[str, Any]) -> Iterator[tuple[str, str, str, bool]]:
    """(what, in A, in B, whether that is a regression) for each status that differs."""
    for name, (before, after) in _pairs(a, b).items():
        was = before["status"] if before else "not in this run"
        now = after["status"] if after else "not in this run"
        if was != now:
            yield name, was, now, was == "passed" and after is not None
        if before and after:
            yield from _checkpoints(name, before, after)


def _checkpoints(lesson: str, before: dict, after: dict) -> Iterator[tuple[str, str, str, bool]]:
    old, new = (
        {check["name"]: "passed" if check["passed"] else "failed" for check in entry["checkpoints"]}
        for entry in (before, after)
    )
    for name in dict.fromkeys([*old, *new]):
        was, now = old.get(name, "not reached"), new.get(name, "not reached")
        if was != now:
            yield f"{lesson}: {name}", was, now, now == "failed"


def figures(a: dict[str, Any], b: dict[str, Any], threshold: float) -> list[Change]:
    """Every recorded figure, and the seconds and peak memory, of the lessons in both runs."""
    found = []
    costs = profile(a) == profile(b)
    for lesson, (before, after) in _pairs(a, b).items():
        if before and after:
            old, new = _samples(before), _samples(after)
            names = dict.fromkeys([*old, *new])
            found += [
                change(lesson, n, old.get(n), new.get(n), threshold, costs=costs) for n in names
            ]
    return found


def profile(run: dict[str, Any]) -> str:
    """The profile that a run's lessons took: the given one, or what "auto" found on its devices."""
    given = str(run["parameters"].get("PROFILE", "auto"))
    backend = run["environment"].get("backend")
    return given if given != "auto" or backend is None else "cpu" if backend == "cpu" else "gpu"


def _pairs(a: dict[str, Any], b: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    old, new = ({entry["name"]: entry for entry in run["notebooks"]} for run in (a, b))
    return {name: (old.get(name), new.get(name)) for name in dict.fromkeys([*old, *new])}


def _samples(entry: dict[str, Any]) -> dict[str, tuple[str, list[Any]]]:
    """(unit, samples) of each figure of a lesson."""
    runs = [run for run in entry.get("repeats") or [entry] if run["status"] == "passed"]
    own = (("lesson time", "s", "seconds"), ("peak memory", "MB", "peak_memory_mb"))
    found = {name: (unit, [r[key] for r in runs if r[key]]) for name, unit, key in own}
    for name, figure in entry["results"].items():
        found[name] = (figure["unit"], figure.get("samples", [figure["value"]]))
    return {name: figure for name, figure in found.items() if figure[1]}
