"""A run of several lessons, one after the other, and what it leaves in its folder."""

import logging
import platform
import subprocess
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import nbformat
import papermill
from papermill.engines import papermill_engines

from course_utils.headless.collect import collect
from course_utils.headless.engine import Execution, LessonEngine
from course_utils.headless.folder import Folder
from course_utils.headless.lessons import Lesson
from course_utils.headless.outcome import judge, not_run, tail
from course_utils.headless.page import to_html
from course_utils.headless.progress import Progress
from course_utils.headless.stop import Stop
from course_utils.headless.watch import Limits, Watch

ENGINE = "jax-course-lesson"


class Course:
    """Runs lessons and keeps results.json true at every moment."""

    def __init__(self, folder: Folder, limits: Limits, stop: Stop, progress: Progress) -> None:
        self.folder, self.limits, self.stop, self.progress = folder, limits, stop, progress
        self.results: dict[str, Any] = {}

    def run(self, lessons: list[Lesson], parameters: dict[str, dict[str, Any]]) -> dict[str, Any]:
        """Run the lessons, each with its parameters; returns what results.json holds."""
        given: dict[str, Any] = {}
        for values in parameters.values():
            given.update(values)
        entries = [not_run(lesson.name) for lesson in lessons]
        environment = runner_environment(lessons[0].path.parent)
        self.results = {"parameters": given, "environment": environment, "notebooks": entries}
        self._keep()
        for number, (lesson, entry) in enumerate(zip(lessons, entries, strict=True), start=1):
            if self.stop.signal:
                break
            entry["status"] = "running"
            self._keep()
            self.progress.start(lesson.name, f"{number}/{len(lessons)}")
            self._run_lesson(lesson, parameters[lesson.name], entry)
            self._keep()
            self.progress.end(entry)
        return self.results

    def _keep(self) -> None:
        self.folder.keep_json("results.json", self.results)

    def _run_lesson(self, lesson: Lesson, parameters: dict[str, Any], entry: dict) -> None:
        since, raised = time.monotonic(), None
        log = self.folder.path / f"{lesson.name}.log"
        with Watch(self.limits, self.stop) as watch:
            execution = Execution(
                watch=watch,
                cwd=lesson.path.parent,
                log=log,
                save=lambda notebook: self._save(lesson.name, notebook),
                report=self.progress.cell,
            )
            try:
                execute(lesson, parameters, execution)
            except Exception as error:  # whatever it is, the other lessons still run
                raised = error
        entry.update(judge(execution, raised), seconds=round(time.monotonic() - since, 3))
        if execution.notebook:
            self.results["environment"].update(collect(execution.notebook.cells).environment)
            self._save(lesson.name, execution.notebook)
            self._save_page(lesson.name, execution.notebook)
        if entry["status"] == "passed" or not tail(log):
            log.unlink(missing_ok=True)

    def _save(self, name: str, notebook: nbformat.NotebookNode) -> None:
        self.folder.keep(f"{name}.ipynb", nbformat.writes(notebook).rstrip("\n") + "\n")

    def _save_page(self, name: str, notebook: nbformat.NotebookNode) -> None:
        try:
            page = to_html(notebook, name)
        except Exception as error:  # a page less must not cost the other lessons
            self.folder.problems[self.folder.path / f"{name}.html"] = f"nbconvert: {error}"
        else:
            self.folder.keep(f"{name}.html", page)


def execute(lesson: Lesson, parameters: dict[str, Any], execution: Execution) -> None:
    """Execute a lesson through papermill; raises what papermill raises."""
    papermill_engines.register(ENGINE, LessonEngine)
    # papermill and nbclient log what is in results.json.
    logging.getLogger("papermill").setLevel(logging.CRITICAL + 1)
    notebook = nbformat.read(lesson.path, as_version=4)
    papermill.execute_notebook(
        notebook,  # not its path: papermill takes braces in a path for fields to fill in
        None,
        parameters=parameters,
        engine_name=ENGINE,
        kernel_name="python3",
        language="python",
        progress_bar=False,
        execution=execution,
    )


def runner_environment(folder: Path) -> dict[str, Any]:
    """What the runner knows of a run by itself; kernels add what they see."""
    commit = _git(folder, "rev-parse", "HEAD")
    changes = _git(folder, "status", "--porcelain") if commit else None
    return {
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "git_commit": commit,
        "git_dirty": bool(changes) if changes is not None else None,
    }


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=folder, capture_output=True, text=True, timeout=30, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
