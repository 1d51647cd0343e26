"""Both sides of a comparison while it runs."""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from course_utils.equivalence import _checks, _hiding, _notes
from course_utils.equivalence._checks import Broken
from course_utils.equivalence._copies import devices_of, mesh_axes, on_one_device, places_of
from course_utils.equivalence._diagnosis import diagnose
from course_utils.equivalence._evidence import Evidence
from course_utils.equivalence._factors import name_factor
from course_utils.equivalence._history import History, Values, read_all
from course_utils.equivalence._judging import Judging
from course_utils.equivalence._noise import Noise
from course_utils.equivalence._options import Options
from course_utils.equivalence._padding import is_pair
from course_utils.equivalence._report import Leaf, NotEqualToOneDevice, NothingProved, Report
from course_utils.equivalence._run import Step
from course_utils.equivalence._shards import shard_count
from course_utils.equivalence._sides import Parallel, Reference
from course_utils.equivalence._sizes import measure


class Session:
    """Advance both sides in lockstep; the first difference ends it with an exception."""

    def __init__(self, step: Step, options: Options):
        self.options = options
        self.parallel = Parallel(step, options)
        self.number = 0
        self.leaves: list[Leaf] = []

    def start(
        self,
        reference: Step | None,
        state: Any,
        batches: Sequence[Any],
        reference_batches: Sequence[Any] | None,
        device: jax.Device | None,
    ) -> None:
        """Copy everything, and make sure that both sides start alike."""
        self.devices = devices_of((state, batches))
        self.axes = mesh_axes(batches) | mesh_axes(state)
        self.places = places_of((state, batches))
        device = device or min(self.devices or jax.devices()[:1], key=lambda d: d.id)
        step = reference or self.parallel.step
        self.reference = Reference(step, self.options, device, is_parallel=reference is None)
        stacked = self.options.stacked
        values = read_all(state, "state", stacked)
        self._stop(_checks.replicas_before(values))
        self.parallel.state, self.batches = state, batches
        self.reference.state = on_one_device(state, device, first_copy=stacked)
        self.history = History(values, read_all(self.reference.state, "state"))
        for batch in batches:
            read_all(batch, "batch")  # raises where an array can't be read
        leading = self.options.leading
        self.whole = [on_one_device(batch, device, leading=leading) for batch in batches]
        self.ref_batches = self.whole
        if reference_batches:
            self.ref_batches = [on_one_device(batch, device) for batch in reference_batches]
            shards = shard_count(batches[0], self.axes, 0 if stacked else leading)
            self._stop(_checks.batches_given(self.whole, self.ref_batches, shards))
        noise = Noise(self.reference, self.ref_batches)
        self.judging = Judging(self.options.rtol, device, self.reference.computes_in, noise.at)

    def advance(self) -> None:
        """One step on both sides, compared."""
        at = self.number % len(self.batches)
        self.number += 1
        new = self.parallel.advance(self.batches[at], self.number)
        ref_new = self._advance_reference(at)
        self.devices |= devices_of(new)
        self.axes = self.axes | mesh_axes(new)
        self.places = self.places | places_of(new)
        self.sizes = measure(
            self.batches[at], self.whole[at], self.axes, len(self.devices), self.options
        )
        with np.errstate(invalid="ignore"):  # inf - inf, where training has broken down
            self._compare(new, ref_new)
            if any(leaf.status == "differs" for leaf in self.leaves):
                raise NotEqualToOneDevice(self._report(self._diagnose()))
        if self.number == 1:
            self.hides = _hiding.hides_the_size(
                self.reference.again, self.reference.batch, self.changes
            )

    def _advance_reference(self, at: int) -> tuple[Any, Any]:
        try:
            return self.reference.advance(self.ref_batches[at], self.number)
        except Exception as error:
            own = self.ref_batches is not self.whole or self.reference.is_parallel
            if not own and is_pair(self.whole[at]):
                error.add_note(_notes.PAIR)
            raise

    def finish(self) -> Report:
        """The report, unless nothing was proved."""
        state = [leaf for leaf in self.leaves if leaf.path in self.history.ref_values]
        floats = {path for path, value in self.history.ref_values.items() if value.inexact}
        counts = [leaf for leaf in state if not floats or leaf.path in floats]
        if not any(leaf.status == "equal" and "doesn't" not in leaf.verdict for leaf in counts):
            raise NothingProved(self._report(_notes.nothing_proved(state, self.number)))
        if self.hides:
            _hiding.warn()
        return self._report("")

    def _compare(self, new: tuple[Any, Any], ref_new: tuple[Any, Any]) -> None:
        after, metrics = (
            read_all(tree, name, self.options.stacked)
            for tree, name in zip(new, ("state", "metrics"), strict=True)
        )
        ref_after, ref_metrics = (
            read_all(tree, name) for tree, name in zip(ref_new, ("state", "metrics"), strict=True)
        )
        if not self.options.check_metrics:
            metrics = ref_metrics = Values()
        _checks.check_state_is_kept(self.history.ref_values, ref_after)
        self._stop(_checks.structure(after | metrics, ref_after | ref_metrics))
        self.changes = self.history.changes(self.number, after, ref_after, metrics, ref_metrics)
        self.leaves = self.judging.judge(self.changes, self.sizes.real, self._name)

    def _name(self, factor: float, path: str) -> str:
        named = name_factor(factor, path, self.sizes)
        return named.text if named else ""

    def _diagnose(self) -> str:
        rtol = max(map(self.judging.rtol, self.changes), default=0.0)
        evidence = Evidence(self.leaves, self.changes, self.sizes, rtol, self.places)
        return diagnose(evidence, self.parallel, self.reference, self.ref_batches)

    def _stop(self, broken: Broken) -> None:
        """Raise if there are rows that break something."""
        if broken[0]:
            self.leaves = broken[0]
            raise NotEqualToOneDevice(self._report(broken[1]))

    def _report(self, suggestion: str) -> Report:
        notes = () if suggestion else _notes.notes(self.leaves, self.devices, self.batches)
        return Report(tuple(self.leaves), self.number, len(self.devices), suggestion, notes)
