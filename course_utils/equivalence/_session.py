"""Both sides of a comparison while it runs."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from course_utils.equivalence import _hiding, _notes
from course_utils.equivalence._batches import compare_batches, flatten, missing_or_extra
from course_utils.equivalence._compare import Change, judge, norm, wide
from course_utils.equivalence._factors import name_factor
from course_utils.equivalence._placed import (
    Placed,
    devices_of,
    is_key,
    mesh_axes,
    on_one_device,
    read,
    replicas_that_differ,
)
from course_utils.equivalence._replay import Replay, shard_count, suggest_by_replay
from course_utils.equivalence._report import Leaf, NotEqualToOneDevice, NothingProved, Report
from course_utils.equivalence._run import Step, run_parallel, run_reference
from course_utils.equivalence._suggest import Evidence, suggest
from course_utils.equivalence._tolerance import compute_precision, matmul_precision, tolerance

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
        self.precision = ""  # the narrowest float the reference computes in, once it matters
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
        self.values = self._read(state, "state", self.stacked)
        self._check_replicas(self.values)
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
            self._check_batches()

    def advance(self) -> None:
        """One step on both sides, compared."""
        at = self.number % len(self.batches)
        self.number += 1
        new = run_parallel(self.step, self.state, self.batches[at], self.number)
        self.ref_before, self.ref_batch = self.ref_state, self.ref_batches[at]
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

    def _check_replicas(self, values: Values) -> None:
        for path, value in values.items():
            odd, seen = replicas_that_differ(value)
            if odd:
                names = ", ".join(copy.device for copy in odd)
                verdict = f"replicas differ before the first step: {names} of {seen} copies"
                self.leaves.append(Leaf(path, None, None, verdict, kind="replicas"))
        if self.leaves:
            raise NotEqualToOneDevice(
                self._report(
                    f"the copies of {self.leaves[0].path} differ before the first step: devices were "
                    "given other values (another seed each?), or an earlier step has let them drift."
                )
            )

    def _check_batches(self) -> None:
        for batch, wanted in zip(self.batches, self.ref_batches, strict=True):
            shards = shard_count(batch, self.axes)
            self.leaves = compare_batches(batch, wanted, shards, self.stacked)
            if self.leaves:
                first = self.leaves[0]
                raise NotEqualToOneDevice(
                    self._report(
                        f"{first.path} on the devices isn't the reference's: {first.verdict}. No "
                        "step was run. Look at how the global batch is put together: offsets of "
                        "shards, shuffles that differ between processes or between leaves."
                    )
                )

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
        self._same_structure({**after, **metrics}, {**ref_after, **ref_metrics}, ref_after)
        self._walk(ref_after)
        self.changes = [
            self._change(path, after[path], ref_after[path], old, self.ref_values[path])
            for path, old in self.values.items()
        ]
        self.changes += [self._change(path, metrics[path], ref_metrics[path]) for path in metrics]
        self.leaves = self._judge()
        self.values, self.ref_values = after, ref_after

    def _change(self, path: str, new: Placed, ref_new: Placed, *before: Placed) -> Change:
        if not (new.finite and ref_new.finite):
            self.broken_since.setdefault(path, self.number)
        since = self.broken_since.get(path, 0)
        return Change(
            path, self.number, new, ref_new, *before, walked=self.walked[path], broken_since=since
        )

    def _same_structure(self, found: Values, wanted: Values, ref_after: Values) -> None:
        lost = missing_or_extra(ref_after, self.ref_values)
        lost += [
            Leaf(path, None, None, f"shape {value.value.shape}, before {ref.value.shape}")
            for path, value in ref_after.items()
            if (ref := self.ref_values.get(path)) and ref.value.shape != value.value.shape
        ]
        if lost:
            raise ValueError(
                "The reference step returns another state than it takes, so it can't be taken "
                "again: " + "; ".join(f"{leaf.path}: {leaf.verdict}" for leaf in lost[:5])
            )
        if found.keys() != wanted.keys():
            self.leaves = missing_or_extra(found, wanted)
            raise NotEqualToOneDevice(
                self._report(
                    "the parallel step returns another structure than the reference; "
                    + "; ".join(f"{leaf.path}: {leaf.verdict}" for leaf in self.leaves[:5])
                )
            )

    def _walk(self, ref_after: Values) -> None:
        """Add this step of the reference to the way that each leaf has walked."""
        for path, value in ref_after.items():
            if value.inexact:
                before = wide(self.ref_values[path].value)
                moved = wide(value.value) - np.where(np.isfinite(before), before, np.nan)
                self.walked[path] += norm(moved[np.isfinite(moved)])

    def _judge(self) -> list[Leaf]:
        def leaf(change: Change) -> Leaf:
            return judge(change, self._rtol(change), self._examples(), self._name)

        leaves = [leaf(change) for change in self.changes]
        tell_tale = any(found.kind == "error" for found in leaves)
        if tell_tale and self.rtol is None and not self.precision:
            # Traced only now: most comparisons never need to know.
            traced = compute_precision(self.reference, self.ref_before, self.ref_batch)
            self.precision = traced
            leaves = [leaf(change) for change in self.changes]
        return leaves

    def _rtol(self, change: Change) -> float:
        if self.rtol is not None:
            return self.rtol
        own = tolerance(change.ref_new.dtype)
        if change.ref_new.dtype == "float64":
            return own
        return max(own, tolerance(matmul_precision(self.device)), tolerance(self.precision))

    def _examples(self) -> int:
        return max(
            (np.shape(x)[0] for x in jax.tree.leaves(self.ref_batch) if np.shape(x)), default=0
        )

    def _name(self, factor: float, path: str) -> str:
        named = name_factor(factor, path, self.axes, len(self.devices))
        return named.text if named else ""

    def _suggestion(self) -> str:
        rtol = max(map(self._rtol, self.changes), default=0.0)
        evidence = Evidence(self.leaves, self.changes, self.axes, len(self.devices), rtol)
        return (
            suggest(evidence)
            or self._narrower()
            or suggest_by_replay(self._replay(evidence))
            or "no known fault fits: no factor, no replica that differs, no shard that explains it. "
            "If the step is right and only computes less precisely, pass rtol=."
        )

    def _narrower(self) -> str:
        at = (self.number - 1) % len(self.batches)
        mine = compute_precision(self.step, self.state, self.batches[at])
        theirs = self.precision or compute_precision(
            self.reference, self.ref_before, self.ref_batch
        )
        if mine == theirs:
            return ""
        return (
            f"the parallel step computes in {mine}, the reference in {theirs}, "
            "and casts its results back: give both the same precision."
        )

    def _rerun(self, batch: Any) -> dict[str, Any]:
        """The reference's state after this step, had it been on another batch."""
        fresh = on_one_device(batch, self.device)
        return flatten(self._run_reference(self.ref_before, fresh)[0], "state")

    def _replay(self, evidence: Evidence) -> Replay:
        at = (self.number - 1) % len(self.batches)
        changes = [change for _, change in evidence.failing("error") if not change.metric]
        shards = len(self.devices) if self.stacked else shard_count(self.batches[at], self.axes)
        return Replay(
            self._rerun,
            self.ref_batch,
            shards,
            changes,
            _has_key((self.ref_before, self.ref_batch)),
        )

    def _report(self, suggestion: str) -> Report:
        notes = () if suggestion else _notes.notes(self.leaves, self.devices, self.batches)
        return Report(tuple(self.leaves), self.number, len(self.devices), suggestion, notes)


def _has_key(tree: Any) -> bool:
    """Whether a tree holds typed keys, or arrays that look like the older kind."""

    def old_style(leaf: Any) -> bool:
        return getattr(leaf, "dtype", None) == np.uint32 and np.shape(leaf)[-1:] == (2,)

    return any(is_key(leaf) or old_style(leaf) for leaf in jax.tree.leaves(tree))
