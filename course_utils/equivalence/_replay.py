"""The reference asked again, under a suspected fault: an answer that fits the difference names it."""

import contextlib
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import numpy as np

from course_utils.equivalence._change import Change, norm, wide
from course_utils.equivalence._copies import holds_keys, map_keys
from course_utils.equivalence._evidence import Evidence
from course_utils.equivalence._factors import is_first_moment, is_second_moment
from course_utils.equivalence._placed import read
from course_utils.equivalence._sides import Reference

Answer = Mapping[str, np.ndarray]

OTHER_KEYS = tuple(functools.partial(jax.random.fold_in, data=i) for i in (1, 2))


@dataclass(frozen=True)
class Replay:
    """What questions need; all batches are as the reference takes them.

    Attributes:
        reference: the side that is asked, about its last step.
        evidence: what differs after that step.
        parts: the shards of the parallel step's batch.
        counts: how many real examples they hold.
        micro: its micro-batches, if it is known to have some.
        batches: every batch of the comparison.
        padded: the parallel step's batch with its padding counted as examples, None without padding.
    """

    reference: Reference
    evidence: Evidence
    parts: Sequence[Any]
    counts: Sequence[int]
    micro: Sequence[Any]
    batches: Sequence[Any]
    padded: Any

    @cached_property
    def changes(self) -> list[Change]:
        """The state's leaves that differ by a numeric error."""
        return [change for _, change in self.evidence.failing("error") if not change.metric]

    @cached_property
    def linear(self) -> list[Change]:
        """Those whose updates are linear in the gradient, as far as names tell."""
        moments = [change for change in self.changes if is_first_moment(change.path)]
        return moments or [c for c in self.changes if not is_second_moment(c.path)]

    def ask(self, batch: Any, **other: Any) -> Answer | None:
        """What differs, for another batch, key or state; None where the reference refuses."""
        with contextlib.suppress(Exception):  # it may not take a batch of this size, or check it
            leaves = self.reference.again(batch, **other)
            return {path: read(leaves[path], path).value for path in self._asked}
        return None

    @cached_property
    def _asked(self) -> list[str]:
        # Not all leaves: with an answer for each shard, those of a large model would fill memory.
        leaves = self.evidence.leaves
        return [leaf.path for leaf in leaves if leaf.status == "differs"]

    @cached_property
    def on_parts(self) -> list[Answer]:
        """What the reference does with each shard alone; empty where it refuses one."""
        asked = zip(self.parts, self.counts, strict=True)
        return self._all([self.ask(p) if count else self._of_nothing(p) for p, count in asked])

    @cached_property
    def on_micro(self) -> list[Answer]:
        """What the reference does with each micro-batch alone."""
        return self._all([self.ask(part) for part in self.micro])

    def ask_with_keys(
        self, batch: Any, function: Callable[[jax.Array], jax.Array]
    ) -> Answer | None:
        """The same with every key, in batch, state or argument, made into another."""
        key, state = self.reference.key_of(self.reference.number), self.reference.before
        key, state, batch = map_keys(function, (key, state, batch))
        return self.ask(batch, key=key, state=state)

    @cached_property
    def on_other_keys(self) -> list[Answer]:
        """What the reference does with two other random keys; empty where it takes none."""
        reference = self.reference
        if reference.key is None and not holds_keys((reference.before, reference.batch)):
            return []
        return self._all([self.ask_with_keys(reference.batch, other) for other in OTHER_KEYS])

    @cached_property
    def random(self) -> bool:
        """Whether another key changes what differs."""
        return bool(self.on_other_keys) and not all(
            norm(wide(self.on_other_keys[0][c.path]) - wide(c.ref_new.value))
            <= self.evidence.rtol * c.scale
            for c in self.changes
        )

    def explains(
        self, answers: Sequence[Answer | None], changes: Sequence[Change] | None = None
    ) -> bool:
        """Whether the mean of `answers` accounts for nearly all of each leaf's difference.

        And of its update, where that is the smaller: nothing accounts for hardly any update.
        """
        changes = self.changes if changes is None else changes
        if not answers or not changes or any(answer is None for answer in answers):
            return False
        for change in changes:
            values = [wide(answer[change.path]) for answer in answers]
            left = norm(sum(values) / len(values) - wide(change.new.value))
            least = min(change.error, norm(change.update))
            if not left <= 0.05 * least + 2 * change.rounding:
                return False
        return True

    def _of_nothing(self, part: Any) -> Answer:
        """The same for a shard of padding only: no update, where the reference divides 0 by 0."""
        answer = self.ask(part) or {}
        nothing = {
            change.path: np.zeros_like(change.ref_new.value) if change.metric else change.old.value
            for change in self.evidence.changes
            if change.path in self._asked
        }
        return {
            path: answer[path] if path in answer and _finite(answer[path]) else value
            for path, value in nothing.items()
        }

    def _all(self, answers: list[Answer | None]) -> list[Answer]:
        return [] if any(answer is None for answer in answers) else answers


def _finite(value: np.ndarray) -> bool:
    return value.dtype.kind in "biu" or bool(np.isfinite(wide(value)).all())
