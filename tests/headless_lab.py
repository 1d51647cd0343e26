"""Small lessons without JAX, and the runner as a person starts it, for test_headless_*.py."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import nbformat
import psutil
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

PARAMETERS = "PROFILE = 'auto'\nDEVICES = 0\nSTEPS = None\nRATE = 0.1\nSHOW = False"
REPORTS = """
from IPython.display import display
from course_utils.checkpoints import checkpoint, record, record_environment
def report(kind, **data):  # also what course_utils.checkpoints would refuse
    display({f"application/vnd.jax-course.{kind}+json": data, "text/plain": kind}, raw=True)
"""


def lesson(folder: Path, name: str, *sources: str, parameters: str | None = PARAMETERS) -> Path:
    """Write a lesson with these cells behind its parameters cell."""
    cells = [new_markdown_cell(f"# {name}")]
    if parameters is not None:
        cells.append(new_code_cell(parameters, metadata={"tags": ["parameters"]}))
    notebook = new_notebook(cells=cells + [new_code_cell(source) for source in sources])
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.ipynb"
    nbformat.write(notebook, path)
    return path


class Lab:
    """A folder with lessons, and a runner that keeps its runs beside them."""

    def __init__(self, place: Path) -> None:
        self.place, self.notebooks, self.runs = place, place / "notebooks", place / "runs"
        self.modules = place / "modules"
        self.modules.mkdir()
        # jsonschema imports it if it can, and it compiles a grammar of URIs: a second of
        # processor time for each runner that a test starts.
        (self.modules / "rfc3987_syntax.py").write_text("raise ImportError")

    def lesson(self, name: str, *sources: str, parameters: str | None = PARAMETERS) -> Path:
        return lesson(self.notebooks, name, *sources, parameters=parameters)

    def start(self, *options: str, env: dict[str, str] | None = None, **how) -> subprocess.Popen:
        """The runner as a process of its own, started in some other folder."""
        where = ["--notebooks", str(self.notebooks), "--output", str(self.runs)]
        return subprocess.Popen(
            [sys.executable, "-m", "course_utils.headless", *where, *options],
            cwd="/",
            env={**os.environ, "PYTHONPATH": self._path(), **(env or {})},
            **{"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, **how},
        )

    def run(
        self, *options: str, env: dict[str, str] | None = None, seconds: float = 120, **how
    ) -> tuple[int, str]:
        """Exit status and everything printed within so many seconds."""
        runner = self.start(*options, env=env, **how)
        said, _ = runner.communicate(timeout=seconds)
        return runner.returncode, said

    def _path(self) -> str:
        inherited = os.environ.get("PYTHONPATH")
        return os.pathsep.join([str(self.modules)] + ([inherited] if inherited else []))

    @property
    def latest(self) -> Path:
        return (self.runs / "latest").resolve()

    def results(self, folder: Path | None = None) -> dict:
        return strict_json((folder or self.latest) / "results.json")


def strict_json(path: Path) -> dict:
    def reject(constant: str) -> None:
        raise ValueError(f"{constant} is not JSON")

    return json.loads(path.read_bytes().decode("utf-8"), parse_constant=reject)


def until(condition: Callable[[], object], seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


def alive(pid: int) -> bool:
    """Whether a process runs; a dead one that nobody has reaped yet does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def pids(folder: Path) -> list[int]:
    """The process numbers that lessons left in files named *.pid."""
    return [int(path.read_text()) for path in sorted(folder.glob("*.pid"))]
