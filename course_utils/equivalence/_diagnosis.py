"""From evidence to the likely cause: what the leaves tell, then what the reference does if asked."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax

from course_utils.equivalence import _replay_trials as trials
from course_utils.equivalence import _suggest as told
from course_utils.equivalence._copies import on_one_device
from course_utils.equivalence._evidence import Evidence
from course_utils.equivalence._meanings import shown_sum
from course_utils.equivalence._padding import all_real, mask_of, real_count, unpadded
from course_utils.equivalence._replay import Replay
from course_utils.equivalence._replay_draws import other_keys
from course_utils.equivalence._replay_metrics import metrics
from course_utils.equivalence._replay_shards import per_shard
from course_utils.equivalence._shards import merged, rows_of, shards_of
from course_utils.equivalence._sides import Parallel, Reference
from course_utils.equivalence._suggest_factor import decay, factor
from course_utils.equivalence._suggest_length import length
from course_utils.equivalence._suggest_method import UNKNOWN, method
from course_utils.equivalence._suggest_replicas import replicas
from course_utils.equivalence._suggest_shards import exchanged, still


def diagnose(
    evidence: Evidence, parallel: Parallel, reference: Reference, batches: Sequence[Any]
) -> str:
    """The likely cause of what differs, in words; the surest evidence is asked for first."""
    replay = _replay(evidence, parallel, reference, batches)
    questions: list[Callable[[], str]] = [
        lambda: told.other_dtype(evidence),
        lambda: told.other_shape(evidence),
        lambda: replicas(replay),
        lambda: told.nan(evidence),
        lambda: told.exact(evidence),
        lambda: still(evidence),
        lambda: metrics(replay),
        lambda: factor(evidence),
        lambda: decay(evidence),
        lambda: exchanged(evidence),
        lambda: _narrower(parallel, reference),
        lambda: trials.other_batch(replay),
        lambda: trials.padding(replay),
        lambda: trials.several_steps(replay, told.counter_times(evidence)),
        lambda: per_shard(replay),
        lambda: trials.moved_shards(replay),
        lambda: length(replay),
        lambda: shown_sum(evidence),
        lambda: other_keys(replay),
        lambda: method(replay),
    ]
    return next(filter(None, map(_answer, questions)), UNKNOWN.strip())


def _answer(question: Callable[[], str]) -> str:
    # Questions run a stranger's step on batches that it wasn't made for. Whatever that does, what
    # differs has been found already, and a report without its cause is better than none.
    with contextlib.suppress(Exception):
        return question()
    return ""


def _narrower(parallel: Parallel, reference: Reference) -> str:
    mine, theirs = parallel.computes_in(), reference.computes_in()
    if mine == theirs:
        return ""
    return (
        f"the parallel step computes in {mine}, the reference in {theirs}, "
        "and casts its results back: give both the same precision."
    )


def _replay(
    evidence: Evidence, parallel: Parallel, reference: Reference, batches: Sequence[Any]
) -> Replay:
    options, sizes = parallel.options, evidence.sizes
    batch = on_one_device(parallel.batch, reference.device)
    whole = jax.tree.map(lambda leaf: merged(leaf, options.leading), batch)
    mask = mask_of(whole, rows_of(whole))
    axis = 0 if options.stacked else options.leading
    parts = list(_cut(batch, sizes.shards, axis, options.leading))
    micro = _cut(batch, sizes.micro_batches, int(options.stacked), options.leading)

    def form(part: Any) -> Any:
        """As the reference takes it: with the mask, or without padding."""
        same = jax.tree.structure(part) == jax.tree.structure(reference.batch)
        return part if same else unpadded(part, reference.batch, mask)

    return Replay(
        reference=reference,
        evidence=evidence,
        parts=[form(part) for part in parts],
        counts=[real_count(part, mask, rows_of(part)) for part in parts],
        micro=[form(part) for part in micro],
        batches=batches,
        padded=all_real(whole, reference.batch, mask),
    )


def _cut(batch: Any, count: int, axis: int, leading: int) -> Iterator[Any]:
    for part in shards_of(batch, count, axis) if count > 1 else ():
        yield jax.tree.map(lambda leaf: merged(leaf, leading), part)
