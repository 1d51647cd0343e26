"""The two sides of a comparison: each holds its step and its state, and advances by one batch."""

from typing import Any

import jax

from course_utils.equivalence._batches import flatten
from course_utils.equivalence._copies import on_one_device
from course_utils.equivalence._options import Options
from course_utils.equivalence._placed import mesh_of_one
from course_utils.equivalence._run import Step, run_parallel, run_reference
from course_utils.equivalence._tolerance import compute_precision


class Parallel:
    """The step in question, on its devices."""

    def __init__(self, step: Step, options: Options):
        self.step, self.options = step, options
        self.state: Any = None
        self.batch: Any = None
        self.precision = ""

    def advance(self, batch: Any, number: int) -> tuple[Any, Any]:
        """What the step returns, finished; its state becomes this side's."""
        self.batch, before = batch, self.state
        extra = self.options.arguments(self.options.key, number)
        result = run_parallel(self.step, (before, batch, *extra), number)
        self.arguments = (before, batch, *extra)
        self.state = result[0]
        return result

    def computes_in(self) -> str:
        """The narrowest float that the step computes in."""
        return compute_precision(self.step, self.arguments)


class Reference:
    """What it is compared with, on one device; it can be asked again."""

    def __init__(self, step: Step, options: Options, device: jax.Device, is_parallel: bool):
        self.step, self.options, self.device = step, options, device
        self.is_parallel = is_parallel
        self.key = None if options.key is None else on_one_device(options.key, device)
        self.state: Any = None
        self.number = 0

    def advance(self, batch: Any, number: int) -> tuple[Any, Any]:
        """What the step returns, finished; its state becomes this side's."""
        self.batch, self.before, self.number = batch, self.state, number
        result = self.run(self.before, batch, number)
        self.state = result[0]
        return result

    def run(self, state: Any, batch: Any, number: int) -> tuple[Any, Any]:
        """What the step returns in its place `number`; nothing is kept of it."""
        return self._run(state, batch, self._arguments(self.key, number))

    def result(
        self, batch: Any, *, state: Any = None, key: Any = None, number: int | None = None
    ) -> tuple[Any, Any]:
        """What this step would have returned for another batch, state, key or place."""
        before = self.before if state is None else state
        extra = self._arguments(
            self.key if key is None else key, self.number if number is None else number
        )
        return self._run(before, on_one_device(batch, self.device), extra)

    def again(self, batch: Any, **other: Any) -> dict[str, Any]:
        """The same as {path: leaf}, state and metrics together."""
        state, metrics = self.result(batch, **other)
        return flatten(state, "state") | flatten(metrics, "metrics")

    def computes_in(self) -> str:
        """The narrowest float that the step computes in."""
        return compute_precision(
            self.step, (self.before, self.batch, *self._arguments(self.key, self.number))
        )

    def _arguments(self, key: Any, number: int) -> tuple[Any, ...]:
        with mesh_of_one(self.device):
            return self.options.arguments(key, number)

    def _run(self, state: Any, batch: Any, extra: tuple[Any, ...]) -> tuple[Any, Any]:
        return run_reference(
            self.step,
            (state, batch, *extra),
            self.number,
            self.device,
            is_parallel=self.is_parallel,
        )
