"""The variants of a group, each in a process of its own, asked in turns, none left behind."""

import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType
from typing import Any

from benchmarks.process import Worker, WorkerFailed
from benchmarks.variant import Variant

# Torch's and oneDNN's threads go on looking for work for a while after their last; the next
# variant must not share the cores with them.
SETTLE_S = 0.3


class Crew:
    """The variants of a group. One that fails is struck off; `errors` says by name why."""

    def __init__(
        self, variants: Iterable[Variant], *, fresh: bool = False, patience: float = 180
    ) -> None:
        """`fresh` gives each call a new process; `patience` is how long one may take, in seconds."""
        self.variants = list(variants)
        self.errors: dict[str, str] = {}
        self._fresh, self._patience = fresh, patience
        self._workers: dict[str, Worker] = {}
        self._turn = 0
        self._scratch = tempfile.TemporaryDirectory(prefix="jax-course-bench-")

    def __enter__(self) -> "Crew":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self.dismiss_all()
        self._scratch.cleanup()

    def each(self, method: str, said: Callable[[str], None] = lambda _: None) -> dict[str, Any]:
        """Ask all for `method`, one at a time, every second time in reverse order.

        Returns:
            The answers by name, of those that gave one.
        """
        answers = {}
        self._turn += 1
        for variant in self.variants if self._turn % 2 else self.variants[::-1]:
            if variant.name in self.errors:
                continue
            try:
                answers[variant.name] = self._worker(variant).ask(method, self._patience)
            except WorkerFailed as error:
                self.errors[variant.name] = str(error)
                said(f"{variant.label}: {error}")
            if self._fresh or variant.name in self.errors:
                self.dismiss(variant.name)
            else:
                time.sleep(SETTLE_S)
        return answers

    def _worker(self, variant: Variant) -> Worker:
        if variant.name not in self._workers:
            self._workers[variant.name] = Worker(variant, Path(self._scratch.name), self._patience)
        return self._workers[variant.name]

    def dismiss(self, name: str) -> None:
        """End one variant's process, if it has one."""
        if worker := self._workers.pop(name, None):
            worker.close()

    def dismiss_all(self) -> None:
        """End every process; who is asked next gets a new one."""
        for name in list(self._workers):
            self.dismiss(name)
