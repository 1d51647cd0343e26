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

    def advance(self, batch: Any, number: int) -> tuple[Any, Any]:
        """What the step returns, finished; its state becomes this side's."""
        key = self.options.key
        key = None if key is None else jax.random.fold_in(key, number)
        self.batch, self.arguments = batch, _arguments(self.state, batch, key)
        result = run_parallel(self.step, self.arguments, number)
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

    def key_of(self, number: int) -> jax.Array | None:
        """The random key that step `number` takes, None if steps take none."""
        with mesh_of_one(self.device):
            return None if self.key is None else jax.random.fold_in(self.key, number)

    def run(self, state: Any, batch: Any, number: int) -> tuple[Any, Any]:
        """What the step returns in its place `number`; nothing is kept of it."""
        return self._run(state, batch, self.key_of(number))

    def result(self, batch: Any, *, state: Any = None, key: Any = None) -> tuple[Any, Any]:
        """What this step would have returned for another batch, state or key."""
        before = self.before if state is None else state
        batch = on_one_device(batch, self.device)
        return self._run(before, batch, self.key_of(self.number) if key is None else key)

    def again(self, batch: Any, **other: Any) -> dict[str, Any]:
        """The same as {path: leaf}, state and metrics together."""
        state, metrics = self.result(batch, **other)
        return flatten(state, "state") | flatten(metrics, "metrics")

    def computes_in(self) -> str:
        """The narrowest float that the step computes in."""
        return compute_precision(
            self.step, _arguments(self.before, self.batch, self.key_of(self.number))
        )

    def _run(self, state: Any, batch: Any, key: jax.Array | None) -> tuple[Any, Any]:
        arguments, alone = _arguments(state, batch, key), self.is_parallel
        return run_reference(self.step, arguments, self.number, self.device, is_parallel=alone)


def _arguments(state: Any, batch: Any, key: jax.Array | None) -> tuple[Any, ...]:
    return (state, batch) if key is None else (state, batch, key)
