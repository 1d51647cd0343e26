"""papermill's engine for lessons: this Python's kernel, under watch, reporting each cell."""

import os
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nbclient.exceptions import CellExecutionError, DeadKernelError
from nbformat import NotebookNode
from nbformat.v4 import new_output
from papermill.clientwrap import PapermillNotebookClient
from papermill.engines import NBClientEngine, NotebookExecutionManager

from course_utils.exercises.progress import OFF
from course_utils.exercises.progress import VARIABLE as PROGRESS
from course_utils.headless.flood import Meter
from course_utils.headless.kernel import manager_in
from course_utils.headless.watch import Watch

DIED = "DeadKernelError"  # ename of the error output of a cell whose kernel died
SAVE_EVERY_S = 1.0


@dataclass
class Execution:
    """One lesson being executed: what the engine needs, and what it leaves behind.

    Attributes:
        watch: has the kernel under watch.
        cwd: the folder in which the kernel runs.
        environment: the environment variables that the kernel inherits.
        log: takes what the kernel's process prints around Jupyter: crash messages.
        save: keeps the notebook as it is now.
        report: called with the executed cells so far when a cell starts or ends.
        notebook: the notebook being filled.
        cell_seconds: the time of each executed code cell.
        cells: how many code cells there are to execute.
        current: label of the cell that runs or failed, "In [3]: first line".
        meter: counts what the cells put out, and cuts what is too much.
        solved: ids of the exercises whose solutions are in the notebook.
    """

    watch: Watch
    cwd: Path
    log: Path
    save: Callable[[NotebookNode], None]
    report: Callable[["Execution"], None]
    notebook: NotebookNode | None = None
    cell_seconds: list[float] = field(default_factory=list)
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    cells: int = 0
    current: str | None = None
    meter: Meter = field(default_factory=Meter)
    solved: list[str] = field(default_factory=list)


def runs(cell: Any) -> bool:
    """Whether nbclient executes this cell."""
    tags = cell.metadata.get("tags", [])
    return cell.cell_type == "code" and bool(cell.source.strip()) and "skip-execution" not in tags


class LessonManager(NotebookExecutionManager):
    """Follows the cells of a lesson; keeps the notebook while it fills."""

    def __init__(self, notebook: NotebookNode, execution: Execution) -> None:
        super().__init__(notebook, progress_bar=False)
        self.execution = execution
        self._saved = 0.0
        execution.notebook = notebook
        execution.cells = sum(map(runs, notebook.cells))

    def save(self, **_: Any) -> None:
        """Keep the notebook, unless that was done a moment ago."""
        if time.monotonic() - self._saved > SAVE_EVERY_S:
            self.execution.save(self.nb)
            self._saved = time.monotonic()

    def cell_start(self, cell: NotebookNode, cell_index: int, **kwargs: Any) -> None:
        """Start the clock of a cell that runs."""
        super().cell_start(cell, cell_index, **kwargs)
        if runs(cell):
            first = next(line for line in cell.source.splitlines() if line.strip())
            number = len(self.execution.cell_seconds) + 1
            self.execution.current = f"In [{number}]: {first.strip()[:80]}"
            self.execution.report(self.execution)
            self.execution.watch.cell_since = time.monotonic()

    def cell_complete(self, cell: NotebookNode, cell_index: int, **kwargs: Any) -> None:
        """Stop the clock, whether or not the cell failed."""
        since, self.execution.watch.cell_since = self.execution.watch.cell_since, None
        super().cell_complete(cell, cell_index, **kwargs)
        if since is not None:
            self.execution.cell_seconds.append(round(time.monotonic() - since, 3))
            self.execution.report(self.execution)


class LessonClient(PapermillNotebookClient):
    """Executes a lesson in a kernel under watch; a dead kernel fails the cell that ran."""

    def execute(self, **_: Any) -> NotebookNode:
        """Start the kernel, execute the cells until one fails, stop the kernel."""
        self.reset_execution_trackers()
        execution = self.nb_man.execution
        with (
            tempfile.TemporaryDirectory(prefix="jax-course-", ignore_cleanup_errors=True) as place,
            execution.log.open("wb") as log,
        ):
            self.km = manager_in(place)
            # What is solved here, no participant has solved.
            environment = {**execution.environment, "IPYTHONDIR": place, PROGRESS: OFF}
            with self.setup_kernel(
                env=execution.watch.family.environment(environment),
                cwd=str(execution.cwd),
                stdout=log,
                stderr=log,
            ):
                self.papermill_execute_cells()
        return self.nb

    def start_new_kernel(self, **kwargs: Any) -> None:
        """Start the kernel, and have it watched from its first moment."""
        super().start_new_kernel(**kwargs)
        self.nb_man.execution.watch.attach(self.km.provisioner.process)

    def execute_cell(self, cell: NotebookNode, cell_index: int, **kwargs: Any) -> NotebookNode:
        """Execute one cell; the end of its kernel becomes its error output."""
        try:
            return super().execute_cell(cell, cell_index, **kwargs)
        except DeadKernelError as error:
            why = self.nb_man.execution.watch.why()
            text = f"{why.message} {why.hint}".strip()
            cell.outputs.append(new_output("error", ename=DIED, evalue=text, traceback=[text]))
            raise CellExecutionError(text, DIED, why.message) from error

    def output(self, outs: Any, msg: Any, display_id: Any, cell_index: int) -> Any:
        """Keep an output message, unless the cell has put out too much already."""
        execution = self.nb_man.execution
        if execution.meter.admits(msg, cell_index, execution.current):
            return super().output(outs, msg, display_id, cell_index)
        return None


class LessonEngine(NBClientEngine):
    """The engine to register with papermill under some name."""

    @classmethod
    def execute_notebook(
        cls, nb: NotebookNode, kernel_name: str, *, execution: Execution, **_: Any
    ) -> NotebookNode:
        """Execute `nb` in place; papermill raises afterwards for an error output."""
        manager = LessonManager(nb, execution)
        manager.notebook_start()
        try:
            client = LessonClient(
                manager,
                kernel_name=kernel_name,
                iopub_timeout=30,  # a cell may print more than 4 s can carry
            )
            client.execute()
        finally:
            manager.notebook_complete()
        return manager.nb
