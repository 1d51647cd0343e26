"""What both sides have gone through since the first step, leaf by leaf."""

from collections import defaultdict
from typing import Any

import numpy as np

from course_utils.equivalence._batches import flatten
from course_utils.equivalence._change import Change, norm, wide
from course_utils.equivalence._placed import Placed, read

Values = dict[str, Placed]


def read_all(tree: Any, name: str, stacked: bool = False) -> Values:
    """Copy every leaf of a tree to the host."""
    return {path: read(leaf, path, stacked) for path, leaf in flatten(tree, name).items()}


class History:
    """The state's last values on both sides, and how far the reference's leaves have walked."""

    def __init__(self, values: Values, ref_values: Values):
        self.values, self.ref_values = values, ref_values
        self._walked: dict[str, float] = defaultdict(float)
        self._broken_since: dict[str, int] = {}

    def changes(
        self, number: int, after: Values, ref_after: Values, metrics: Values, ref_metrics: Values
    ) -> list[Change]:
        """A change for each leaf of the state, then of the metrics; the new values become the last."""
        self._walk(ref_after)
        found = [
            self._change(path, number, after[path], ref_after[path], old, self.ref_values[path])
            for path, old in self.values.items()
        ]
        found += [self._change(path, number, metrics[path], ref_metrics[path]) for path in metrics]
        self.values, self.ref_values = after, ref_after
        return found

    def _change(self, path: str, number: int, new: Placed, ref: Placed, *before: Placed) -> Change:
        if not (new.finite and ref.finite):
            self._broken_since.setdefault(path, number)
        since = self._broken_since.get(path, 0)
        return Change(
            path, number, new, ref, *before, walked=self._walked[path], broken_since=since
        )

    def _walk(self, ref_after: Values) -> None:
        """Add this step of the reference to the way that each leaf has walked."""
        for path, value in ref_after.items():
            if value.inexact:
                before = wide(self.ref_values[path].value)
                moved = wide(value.value) - np.where(np.isfinite(before), before, np.nan)
                self._walked[path] += norm(moved[np.isfinite(moved)])
