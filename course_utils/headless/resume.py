"""Go on with a run that was stopped: its lessons, its parameters, its folder."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from course_utils.headless.environment import now, runner_environment
from course_utils.headless.errors import UsageError
from course_utils.headless.repeats import still_to_run

NO = {"", "0", "no", "false"}
GONE = {
    "cell": None,
    "message": "The runner ended while this lesson ran.",
    "hint": "Run it again: RESUME=1 make run.",
}


@dataclass
class Earlier:
    """A run to go on with.

    Attributes:
        folder: its folder.
        results: what its results.json holds, with what was running marked as interrupted.
    """

    folder: Path
    results: dict[str, Any]

    @property
    def lessons(self) -> list[str]:
        """The names of its lessons, in order."""
        return [entry["name"] for entry in self.results["notebooks"]]

    @property
    def given(self) -> dict[str, str]:
        """Its parameters, as a command line would give them."""
        return {name: repr(value) for name, value in self.results["parameters"].items()}

    @property
    def summary(self) -> str:
        """One line: what goes on."""
        left = [e for e in self.results["notebooks"] if still_to_run(e, self.repeat)]
        return f"Going on with {self.folder}: {len(left)} of {len(self.lessons)} lessons to run."

    @property
    def repeat(self) -> int:
        """How often each lesson is to run."""
        return int(self.results["environment"].get("repeat", 1))

    @property
    def solved(self) -> bool:
        """Whether its lessons run with their exercises solved."""
        return bool(self.results["environment"].get("solved"))


def find(which: str, runs: Path, notebooks: Path) -> Earlier:
    """The run that `which` names: "1" the newest, else a folder or its name in `runs`.

    Raises:
        UsageError: there is no such run, its results cannot be read, or it began with another
            commit or Python: one page would then tell of two courses.
    """
    newest = which.lower() in ("1", "yes", "true")
    folder = runs / "latest" if newest else _place(which, runs)
    results = load(folder)
    here = runner_environment(notebooks)
    for key, what in (("git_commit", "commit"), ("python", "Python")):
        then = results["environment"].get(key)
        if then != here[key]:
            raise UsageError(
                f"The run in {folder} began with {what} {then}; this is {here[key]}. "
                "Start a new run, or go back to what it began with."
            )
    results["environment"].setdefault("resumed", []).append(now())
    for entry in results["notebooks"]:
        _mark(entry)
    return Earlier(folder.resolve(), results)


def _place(which: str, runs: Path) -> Path:
    return Path(which) if Path(which).is_dir() else runs / which


def load(folder: Path) -> dict[str, Any]:
    """What results.json of a run holds; UsageError if there is none that can be read."""
    path = folder / "results.json"
    try:
        results = json.loads(path.read_text(encoding="utf-8"))
        results["environment"], results["parameters"], results["notebooks"][0]["name"]
    except FileNotFoundError as error:
        raise UsageError(f"{folder} holds no run: there is no results.json in it.") from error
    except (OSError, ValueError, KeyError, IndexError, TypeError) as error:
        raise UsageError(f"{path} cannot be read: {error!r}.") from error
    return results


def _mark(entry: dict[str, Any]) -> None:
    """A lesson that ran when the runner ended was interrupted; that is counted, and stays."""
    if entry["status"] == "running":
        entry.update(status="interrupted", error=GONE)
    if entry["status"] == "interrupted":
        entry["interrupted"] = entry.get("interrupted", 0) + 1
    if "repeats" in entry:
        entry["repeats"] = [a for a in entry["repeats"] if a["status"] != "interrupted"]
