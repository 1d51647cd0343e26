"""Both sides of a comparison while it runs."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from course_utils.equivalence import _checks, _hiding, _notes
from course_utils.equivalence._batches import flatten
from course_utils.equivalence._change import Change, norm, wide
from course_utils.equivalence._checks import Broken
from course_utils.equivalence._copies import devices_of, holds_keys, mesh_axes, on_one_device
from course_utils.equivalence._evidence import Evidence
from course_utils.equivalence._factors import name_factor
from course_utils.equivalence._judging import Judging
from course_utils.equivalence._placed import Placed, read
from course_utils.equivalence._replay import Replay, suggest_by_replay
from course_utils.equivalence._report import Leaf, NotEqualToOneDevice, NothingProved, Report
from course_utils.equivalence._run import Step, run_parallel, run_reference
from course_utils.equivalence._shards import rows_of, shard_count
from course_utils.equivalence._suggest import suggest
from course_utils.equivalence._tolerance import compute_precision

Values = dict[str, Placed]


class Session:
    """Advance both sides in lockstep; the first difference ends it with an exception."""

    def __init__(
        self,
        step: Step,
        reference: Step,
        is_parallel: bool,
        rtol: float | None,
        check_metrics: bool,
        stacked: bool,
    ):
        self.step, self.reference, self.is_parallel = step, reference, is_parallel
        self.rtol, self.check_metrics, self.stacked = rtol, check_metrics, stacked
        self.number = 0
        self.walked: dict[str, float] = defaultdict(float)
        self.broken_since: dict[str, int] = {}
        self.leaves: list[Leaf] = []
        self.changes: list[Change] = []

    def start(
        self,
        state: Any,
        batches: Sequence[Any],
        reference_batches: Sequence[Any] | None,
        device: jax.Device | None,
    ) -> None:
        """Copy everything, and make sure that both sides start alike."""
        self.devices = devices_of((state, batches))
        self.axes = mesh_axes(batches) | mesh_axes(state)
        self.device = device or min(self.devices or jax.devices()[:1], key=lambda d: d.id)
        self.judging = Judging(self.rtol, self.device, self._reference_precision)
        self.values = self._read(state, "state", self.stacked)
        self._stop(_checks.replicas_before(self.values))
        self.state, self.batches = state, batches
        self.ref_state = on_one_device(state, self.device, "copies" if self.stacked else "")
        self.ref_values = self._read(self.ref_state, "state")
        rows = "rows" if self.stacked else ""
        self.ref_batches = reference_batches or batches
        self.ref_batches = [
            on_one_device(batch, self.device, "" if reference_batches else rows)
            for batch in self.ref_batches
        ]
        for batch in batches:
            self._read(batch, "batch")  # raises where an array can't be read
        if reference_batches:
            self._stop(_checks.batches_given(batches, self.ref_batches, self.axes, self.stacked))

    def advance(self) -> None:
        """One step on both sides, compared."""
        at = self.number % len(self.batches)
        self.number += 1
        self.batch, self.ref_batch = self.batches[at], self.ref_batches[at]
        new = run_parallel(self.step, self.state, self.batch, self.number)
        self.ref_before = self.ref_state
        ref_new = self._run_reference(self.ref_before, self.ref_batch)
        self.devices |= devices_of(new)
        self.axes = self.axes | mesh_axes(new)
        with np.errstate(invalid="ignore"):  # inf - inf, where training has broken down
            self._compare(new, ref_new)
        self.state, self.ref_state = new[0], ref_new[0]
        if any(leaf.status == "differs" for leaf in self.leaves):
            with np.errstate(invalid="ignore"):
                raise NotEqualToOneDevice(self._report(self._suggestion()))
        if self.number == 1:
            self.hides = _hiding.hides_the_size(self._rerun, self.ref_batch, self.changes)

    def finish(self) -> Report:
        """The report, unless nothing was proved."""
        state = [leaf for leaf in self.leaves if leaf.path in self.ref_values]
        floats = {path for path, value in self.ref_values.items() if value.inexact}
        counts = [leaf for leaf in state if not floats or leaf.path in floats]
        if not any(leaf.status == "equal" and "doesn't" not in leaf.verdict for leaf in counts):
            raise NothingProved(self._report(_notes.nothing_proved(state, self.number)))
        if self.hides:
            _hiding.warn()
        return self._report("")

    def _run_reference(self, state: Any, batch: Any) -> tuple[Any, Any]:
        return run_reference(
            self.reference, state, batch, self.number, self.device, is_parallel=self.is_parallel
        )

    def _read(self, tree: Any, name: str, stacked: bool = False) -> Values:
        return {path: read(leaf, path, stacked) for path, leaf in flatten(tree, name).items()}

    def _compare(self, new: tuple[Any, Any], ref_new: tuple[Any, Any]) -> None:
        after, metrics = (
            self._read(tree, name, self.stacked)
            for tree, name in zip(new, ("state", "metrics"), strict=True)
        )
        ref_after, ref_metrics = (
            self._read(tree, name) for tree, name in zip(ref_new, ("state", "metrics"), strict=True)
        )
        if not self.check_metrics:
            metrics = ref_metrics = {}
        _checks.check_state_is_kept(self.ref_values, ref_after)
        self._stop(_checks.structure(after | metrics, ref_after | ref_metrics))
        self._walk(ref_after)
        self.changes = [
            self._change(path, after[path], ref_after[path], old, self.ref_values[path])
            for path, old in self.values.items()
        ]
        self.changes += [self._change(path, metrics[path], ref_metrics[path]) for path in metrics]
        rows = rows_of(self.ref_batch)
        self.leaves = self.judging.judge(self.changes, rows, self._name)
        self.values, self.ref_values = after, ref_after

    def _change(self, path: str, new: Placed, ref_new: Placed, *before: Placed) -> Change:
        if not (new.finite and ref_new.finite):
            self.broken_since.setdefault(path, self.number)
        since = self.broken_since.get(path, 0)
        return Change(
            path, self.number, new, ref_new, *before, walked=self.walked[path], broken_since=since
        )

    def _walk(self, ref_after: Values) -> None:
        """Add this step of the reference to the way that each leaf has walked."""
        for path, value in ref_after.items():
            if value.inexact:
                before = wide(self.ref_values[path].value)
                moved = wide(value.value) - np.where(np.isfinite(before), before, np.nan)
                self.walked[path] += norm(moved[np.isfinite(moved)])

    def _name(self, factor: float, path: str) -> str:
        named = name_factor(factor, path, self.axes, len(self.devices))
        return named.text if named else ""

    def _suggestion(self) -> str:
        rtol = max(map(self.judging.rtol, self.changes), default=0.0)
        evidence = Evidence(self.leaves, self.changes, self.axes, len(self.devices), rtol)
        return (
            suggest(evidence)
            or self._narrower()
            or suggest_by_replay(self._replay(evidence))
            or "no known fault fits: no factor, no replica that differs, no shard that explains it. "
            "If the step is right and only computes less precisely, pass rtol=."
        )

    def _narrower(self) -> str:
        mine = compute_precision(self.step, self.state, self.batch)
        theirs = self._reference_precision()
        if mine == theirs:
            return ""
        return (
            f"the parallel step computes in {mine}, the reference in {theirs}, "
            "and casts its results back: give both the same precision."
        )

    def _reference_precision(self) -> str:
        return compute_precision(self.reference, self.ref_before, self.ref_batch)

    def _rerun(self, batch: Any) -> dict[str, Any]:
        """The reference's state after this step, had it been on another batch."""
        fresh = on_one_device(batch, self.device)
        return flatten(self._run_reference(self.ref_before, fresh)[0], "state")

    def _replay(self, evidence: Evidence) -> Replay:
        changes = [change for _, change in evidence.failing("error") if not change.metric]
        shards = len(self.devices) if self.stacked else shard_count(self.batch, self.axes)
        keys = holds_keys((self.ref_before, self.ref_batch))
        return Replay(self._rerun, self.ref_batch, shards, changes, keys)

    def _stop(self, broken: Broken) -> None:
        """Raise if there are rows that break something."""
        if broken[0]:
            self.leaves = broken[0]
            raise NotEqualToOneDevice(self._report(broken[1]))

    def _report(self, suggestion: str) -> Report:
        notes = () if suggestion else _notes.notes(self.leaves, self.devices, self.batches)
        return Report(tuple(self.leaves), self.number, len(self.devices), suggestion, notes)
