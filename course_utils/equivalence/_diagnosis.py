"""From evidence to the likely cause: what the leaves tell, then what the reference does if asked."""

from collections.abc import Iterator
from typing import Any

import jax

from course_utils.equivalence._copies import holds_keys, on_one_device
from course_utils.equivalence._evidence import Evidence
from course_utils.equivalence._padding import unpadded
from course_utils.equivalence._replay import Replay, suggest_by_replay
from course_utils.equivalence._shards import merged, shard_count, shards_of
from course_utils.equivalence._sides import Parallel, Reference
from course_utils.equivalence._suggest import suggest


def diagnose(evidence: Evidence, parallel: Parallel, reference: Reference) -> str:
    """The likely cause of what differs, in words."""
    return (
        suggest(evidence)
        or _narrower(parallel, reference)
        or suggest_by_replay(_replay(evidence, parallel, reference))
        or "no known fault fits: no factor, no replica that differs, no shard that explains it. "
        "If the step is right and only computes less precisely, pass rtol=."
    )


def _narrower(parallel: Parallel, reference: Reference) -> str:
    mine, theirs = parallel.computes_in(), reference.computes_in()
    if mine == theirs:
        return ""
    return (
        f"the parallel step computes in {mine}, the reference in {theirs}, "
        "and casts its results back: give both the same precision."
    )


def _replay(evidence: Evidence, parallel: Parallel, reference: Reference) -> Replay:
    changes = [change for _, change in evidence.failing("error") if not change.metric]
    parts = list(_parts(parallel, reference, evidence.axes, evidence.devices))
    keys = reference.key is not None or holds_keys((reference.before, reference.batch))
    return Replay(reference.again, reference.batch, parts, changes, keys)


def _parts(parallel: Parallel, reference: Reference, axes: Any, devices: int) -> Iterator[Any]:
    """Each shard of the parallel batch, as the reference takes it."""
    options = parallel.options
    axis = 0 if options.stacked else options.leading
    shards = devices if options.stacked else shard_count(parallel.batch, axes, axis)
    batch = on_one_device(parallel.batch, reference.device)
    form = jax.tree.structure(reference.batch)
    for part in shards_of(batch, shards, axis) if shards > 1 else ():
        part = jax.tree.map(lambda leaf: merged(leaf, options.leading), part)
        yield part if jax.tree.structure(part) == form else unpadded(part, reference.batch)
