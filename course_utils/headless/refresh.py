"""Make the kept outputs of a lesson anew: default parameters, clean kernel, CPU devices."""

import os
import tempfile
from pathlib import Path

import nbformat

from course_utils.headless.course import execute
from course_utils.headless.engine import Execution
from course_utils.headless.errors import UsageError
from course_utils.headless.form import MARKED
from course_utils.headless.lessons import Lesson
from course_utils.headless.outcome import judge
from course_utils.headless.stop import Stop
from course_utils.headless.watch import Limits, Watch


def refreshed(lesson: Lesson, stop: Stop) -> str:
    """The notebook of `lesson` with new outputs in its cells marked for nbval.

    Raises:
        UsageError: the lesson does not run to its end; its outputs are no example then.
    """
    with tempfile.TemporaryDirectory() as place, Watch(Limits(), stop) as watch:
        execution = Execution(
            watch=watch,
            cwd=lesson.path.parent,
            log=Path(place, "kernel.log"),
            save=lambda notebook: None,
            report=lambda execution: None,
            environment=on_simulated_devices(),
        )
        raised = None
        try:
            execute(lesson, {}, execution)
        except Exception as error:
            raised = error
        outcome = judge(execution, raised)
    if outcome["error"]:
        what = "\n".join(str(part) for part in outcome["error"].values() if part)
        raise UsageError(f"{lesson.name} does not run, so it keeps its old outputs. {what}")
    return _with_outputs_of(execution.notebook, lesson.path)


def on_simulated_devices() -> dict[str, str]:
    """This environment without what would choose other devices than the tests have."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("JAX_", "XLA_"))}
    return {**inherited, "JAX_PLATFORMS": "cpu"}


def _with_outputs_of(executed: nbformat.NotebookNode, path: Path) -> str:
    notebook = nbformat.read(path, as_version=4)
    for cell, ran in zip(notebook.cells, executed.cells, strict=True):
        if cell.cell_type == "code" and MARKED.search(cell.source):
            cell.outputs = ran.outputs
    return nbformat.writes(notebook)
