"""A run of several lessons, one after the other, and what it leaves in its folder."""

import logging
import time
from typing import Any

import nbformat
import papermill
from papermill.engines import papermill_engines

from course_utils.headless import repeats
from course_utils.headless.collect import collect
from course_utils.headless.engine import Execution, LessonEngine
from course_utils.headless.environment import now, runner_environment
from course_utils.headless.folder import Folder
from course_utils.headless.lessons import Lesson
from course_utils.headless.outcome import judge, tail, unreadable
from course_utils.headless.page import to_html
from course_utils.headless.progress import Progress
from course_utils.headless.report import render
from course_utils.headless.solved import put_solutions_in
from course_utils.headless.stop import Stop
from course_utils.headless.watch import Limits, Watch

ENGINE = "jax-course-lesson"
DEVICES = ("device_count", "device_kind", "simulated")


class Course:
    """Runs lessons and keeps results.json and index.html true at every moment."""

    def __init__(
        self, folder: Folder, limits: Limits, stop: Stop, progress: Progress, solved: bool = False
    ) -> None:
        """`solved`: whether the lessons run with the solutions of all exercises put in."""
        self.folder, self.limits, self.stop, self.progress = folder, limits, stop, progress
        self.solved = solved
        self.results: dict[str, Any] = {}

    def run(
        self,
        lessons: list[Lesson],
        parameters: dict[str, dict[str, Any]],
        repeat: int = 1,
        results: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Run the lessons, each with its parameters; returns what results.json holds.

        Args:
            lessons: in the order in which to run them.
            parameters: for each lesson's name, what it is given.
            repeat: how often each lesson runs.
            results: of a run to go on with; lessons that are done are not run again.
        """
        self.results = results or _beginning(lessons, parameters, repeat)
        self.results["environment"].update({"solved": True} if self.solved else {})
        entries = self.results["notebooks"]
        self.folder.reserve()
        self._keep()
        for number, (lesson, entry) in enumerate(zip(lessons, entries, strict=True), start=1):
            for left in range(repeats.still_to_run(entry, repeat), 0, -1):
                if self.stop.signal:
                    break
                again = f", repeat {repeat - left + 1}/{repeat}" if repeat > 1 else ""
                place = f"{number}/{len(lessons)}{again}"
                self._attempt(lesson, parameters[lesson.name], entry, repeat, place)
        self.results["environment"]["finished"] = now()
        self.folder.release()
        self._keep()
        return self.results

    def _attempt(
        self, lesson: Lesson, parameters: dict, entry: dict, repeat: int, place: str
    ) -> None:
        repeats.begin(entry)
        self._keep()
        name = repeats.file_name(lesson.name, len(entry.get("repeats", ())) + 1)
        self.progress.start(lesson.name, place)
        if lesson.problem:
            attempt = unreadable(lesson.problem)
        else:
            attempt = self._run_lesson(name, lesson, parameters)
        attempt["name"] = lesson.name
        repeats.add(entry, attempt, repeat)
        self._keep()
        self.progress.end(attempt)

    def _keep(self) -> None:
        lost = {path.name: why for path, why in self.folder.problems.items()}
        self.results.pop("problems", None)
        self.results.update({"problems": lost} if lost else {})
        self.folder.keep_json("results.json", self.results)
        try:
            page = render(self.results, self.folder.path)
        except Exception as error:  # a page less must not cost the other lessons
            self.folder.problems[self.folder.path / "index.html"] = f"report: {error!r}"
        else:
            self.folder.keep("index.html", page)

    def _run_lesson(self, name: str, lesson: Lesson, parameters: dict[str, Any]) -> dict[str, Any]:
        since, raised = time.monotonic(), None
        log = self.folder.path / f"{name}.log"
        with Watch(self.limits, self.stop) as watch:
            execution = Execution(
                watch=watch,
                cwd=lesson.path.parent,
                log=log,
                save=lambda notebook: self._save(name, notebook),
                report=self.progress.cell,
            )
            try:
                execute(lesson, parameters, execution, self.solved)
            except Exception as error:  # whatever it is, the other lessons still run
                raised = error
        outcome = {**repeats.not_run(lesson.name), **judge(execution, raised)}
        outcome["seconds"] = round(time.monotonic() - since, 3)
        if execution.notebook:
            self._note(lesson.name, collect(execution.notebook.cells).environment)
            self._save(name, execution.notebook)
            self._save_page(name, execution.notebook)
        if outcome["status"] == "passed" or not tail(log):
            log.unlink(missing_ok=True)
        return outcome

    def _note(self, name: str, found: dict[str, Any]) -> None:
        """Keep what a kernel saw; devices for each lesson, since lessons choose their own."""
        environment = self.results["environment"]
        environment.update(found)
        if "device_count" in found:
            devices = {key: found.get(key) for key in DEVICES}
            environment.setdefault("lesson_devices", {})[name] = devices

    def _save(self, name: str, notebook: nbformat.NotebookNode) -> None:
        self.folder.keep(f"{name}.ipynb", nbformat.writes(notebook).rstrip("\n") + "\n")

    def _save_page(self, name: str, notebook: nbformat.NotebookNode) -> None:
        try:
            page = to_html(notebook, name)
        except Exception as error:  # a page less must not cost the other lessons
            self.folder.problems[self.folder.path / f"{name}.html"] = f"nbconvert: {error}"
        else:
            self.folder.keep(f"{name}.html", page)


def _beginning(lessons: list[Lesson], parameters: dict, repeat: int) -> dict[str, Any]:
    """What results.json holds before anything has run."""
    given: dict[str, Any] = {}
    for values in parameters.values():
        given.update(values)
    environment = runner_environment(lessons[0].path.parent)
    environment |= {"repeat": repeat} if repeat > 1 else {}
    entries = [repeats.not_run(lesson.name) for lesson in lessons]
    return {"parameters": given, "environment": environment, "notebooks": entries}


def execute(
    lesson: Lesson, parameters: dict[str, Any], execution: Execution, solved: bool = False
) -> None:
    """Execute a lesson through papermill, with its exercises solved or as they stand.

    Raises:
        Exception: what papermill raises, or UsageError for exercises without a solution.
    """
    papermill_engines.register(ENGINE, LessonEngine)
    # papermill and nbclient log what is in results.json.
    logging.getLogger("papermill").setLevel(logging.CRITICAL + 1)
    notebook = nbformat.read(lesson.path, as_version=4)
    if solved:
        beside = lesson.path.parent.with_name("solutions")
        execution.solved = put_solutions_in(notebook.cells, lesson.name, beside)
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
