"""What rounding alone does to the reference: how far it goes astray from a state rounded otherwise.

A gradient that is zero but for rounding, such as that of a bias before batch normalisation, points
anywhere, and Adam makes full steps of it. No right step could be told from a wrong one by it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from course_utils.equivalence._change import norm, wide
from course_utils.equivalence._history import Values, read_all
from course_utils.equivalence._placed import Placed, is_data
from course_utils.equivalence._sides import Reference

_RUNS = 4  # two pairs: of +r and -r one turns a decision that is on the edge


class Noise:
    """The reference run from its first state several times, each time rounded otherwise."""

    def __init__(self, reference: Reference, batches: Sequence[Any]):
        self._reference, self._batches = reference, batches
        self._first = reference.state
        self._states: list[Any] = []
        self._values: list[Values] = []
        self._number = 0

    def at(self, number: int, eps: float, wanted: Mapping[str, Placed]) -> dict[str, float]:
        """How far the runs get from `wanted`, the reference's leaves after step `number`, at most.

        A norm for floats, a count of entries' differences for integers; 0 where there is none to
        give. `eps` is the relative rounding, that of the narrowest float in the computation.
        """
        if not self._states:
            self._states = [_shaken(self._first, eps, run) for run in range(_RUNS)]
        while self._number < number:
            batch = self._batches[self._number % len(self._batches)]
            self._number += 1
            self._advance(batch, eps)
        return {
            path: max(_apart(values[path], value) for values in self._values)
            for path, value in wanted.items()
        }

    def _advance(self, batch: Any, eps: float) -> None:
        results = [
            self._reference.run(state, _shaken(batch, eps, run), self._number)
            for run, state in enumerate(self._states)
        ]
        self._states = [state for state, _ in results]
        self._values = [read_all(s, "state") | read_all(m, "metrics") for s, m in results]


def _shaken(tree: Any, eps: float, run: int) -> Any:
    """Every float moved by up to `eps` of itself; masks and one-hot rows stay as they are."""
    rng = np.random.default_rng(run // 2)
    sign = 1 if run % 2 else -1

    def shake(leaf: Any) -> Any:
        if not (is_data(leaf) and jnp.issubdtype(getattr(leaf, "dtype", int), jnp.floating)):
            return leaf
        value = np.asarray(leaf)
        by = 1 + sign * eps * rng.uniform(-1, 1, value.shape)
        moved = (value.astype(np.float64) * by).astype(value.dtype)
        if np.isin(value, (0, 1)).all():
            return leaf
        return jax.device_put(moved, leaf.sharding) if isinstance(leaf, jax.Array) else moved

    return jax.tree.map(shake, tree)


def _apart(found: Placed, wanted: Placed) -> float:
    if found.value.shape != wanted.value.shape or not (found.finite and wanted.finite):
        return 0.0
    apart = wide(found.value) - wide(wanted.value)
    return norm(apart) if wanted.inexact else float(np.abs(apart).sum())
