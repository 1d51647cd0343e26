"""How to find a cause that no question has found."""

from course_utils.equivalence._replay import Replay
from course_utils.equivalence._replay_draws import FAR, as_other_keys, drawn
from course_utils.equivalence._report import Leaf
from course_utils.equivalence._tolerance import tolerance

UNKNOWN = "no known fault fits: no factor, no replica that differs, no shard that explains it. "


def method(replay: Replay) -> str:
    """What to try next: another tolerance only where an error could be one of precision."""
    evidence = replay.evidence
    failing = evidence.failing("error")
    if failing and all(leaf.relative_error <= _imprecise(c.ref_new.dtype) for leaf, c in failing):
        return UNKNOWN + "If the step is right and only computes less precisely, pass rtol=."
    error = max((leaf.relative_error for leaf, _ in failing), default=0.0)
    found = f"{UNKNOWN}A relative error of {error:.2g} is no rounding. "
    if failing and all(change.metric for _, change in failing):
        return found + _metrics(failing[0][0])
    return found + _draws(replay) + _ragged(replay) + _switch_off(replay)


def _imprecise(dtype: str) -> float:
    """The largest error that a lower precision may explain."""
    return min(100 * tolerance(dtype), max(1e-3, tolerance(dtype)))


def _metrics(leaf: Leaf) -> str:
    return (
        f"The state agrees, so only {leaf.path} is put together in another way. Return the sums and "
        "counts that it is made of as metrics, on both sides, and see which one differs: each has "
        "to be reduced, and masked if the batch is padded."
    )


def _draws(replay: Replay) -> str:
    if path := drawn(replay):
        return (
            f"It is hardly the random numbers: {path} depends on them, and agrees. They hide other "
            "causes, though. "
        )
    if times := as_other_keys(replay):
        may = "don't do it alone" if times > FAR else "may do it, or a part of it"
        return (
            f"The random numbers {may}: the two sides are {times:.2g} times as far apart as another "
            "key moves the reference. "
        )
    return ""


def _ragged(replay: Replay) -> str:
    if len(set(replay.counts)) < 2:
        return ""
    return (
        f"The shards hold {', '.join(map(str, replay.counts))} real examples: see that losses and "
        "counts are added up over the devices (psum), and then divided. "
    )


def _switch_off(replay: Replay) -> str:
    first = "First compare once without random numbers (no key, no dropout). Then switch"
    return (
        f"{first if replay.on_other_keys else 'Switch'} off, on both sides, what isn't linear in "
        "the gradient (clipping, normalising; plain SGD instead of Adam), compare, and switch it on "
        "again piece by piece: the piece with which the difference comes is the one to look at."
    )
