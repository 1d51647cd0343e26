"""A process that imports, and looks at the clock. It has imported nothing of ours before."""

import importlib
import time

BASE = ("jax", "optax", "matplotlib.pyplot")
ALL, ADDED = "ms in all", "ms added by course_utils"


class Imports:
    """First what every lesson needs anyway, then the `modules`."""

    def __init__(self, *modules: str) -> None:
        self._modules = modules

    def prepare(self) -> None:
        """Have the modules compiled to bytecode, as they are after their first import ever."""
        self.round()

    def round(self) -> dict[str, float]:
        start = time.perf_counter()
        for name in BASE:
            importlib.import_module(name)
        between = time.perf_counter()
        for name in self._modules:
            importlib.import_module(name)
        end = time.perf_counter()
        added = {ADDED: 1000 * (end - between)} if self._modules else {}
        return {ALL: 1000 * (end - start), **added}
