"""Random numbers: are they those of one device, and if not, whose?"""

import jax
import numpy as np

from course_utils.equivalence._change import Change, norm, wide
from course_utils.equivalence._copies import map_keys
from course_utils.equivalence._judging import flips
from course_utils.equivalence._placed import read
from course_utils.equivalence._replay import OTHER_KEYS, Replay

# Other draws move the update by about as far as those of another key do. If all devices draw alike,
# that is further, by the root of their number at most.
FAR = 3


def other_keys(replay: Replay) -> str:
    """Keys that depend on the device, or on nothing."""
    if not replay.on_other_keys:
        return ""
    count, reference = len(replay.parts), replay.reference
    for own in (
        lambda i: lambda key: jax.random.fold_in(key, i),
        lambda i: lambda key: jax.random.split(key, count)[i],
    ):
        answers = [replay.ask_with_keys(part, own(i)) for i, part in enumerate(replay.parts)]
        if replay.explains(answers):
            return (
                "each device has a key of its own (axis_index folded in, or one of "
                "split(key, devices)), so what an example draws depends on the number of devices. "
                "Give each example its own key, by its place in the global batch (example_keys)."
            )
    for number in range(1, reference.number) if reference.key is not None else ():
        if replay.explains([replay.ask(reference.batch, key=reference.key_of(number))]):
            return (
                f"the update is the one that the random key of step {number} gives: the same key "
                "in every step, or one that is a step late."
            )
    even = len(set(replay.counts)) < 2  # else a mean of means is as likely
    likely = even and 1 / FAR <= as_other_keys(replay) <= FAR and not drawn(replay)
    return _LIKELY if likely else ""


_LIKELY = (
    "no factor and no replica tells, and another random key moves the reference's update as far as "
    "the two sides are apart: likely the random numbers. Give each example its own key, by its "
    "place in the global batch (example_keys), and use the key that the step is called with. "
    "To be sure, compare once without random numbers: what differs then, too, has another cause."
)


def as_other_keys(replay: Replay) -> float:
    """How far the two sides are apart, over how far other keys move the reference; 0 without."""
    if not (replay.random and replay.changes):
        return 0.0
    scales = [norm(change.ref_update) or 1.0 for change in replay.changes]
    apart = [c.error / scale for c, scale in zip(replay.changes, scales, strict=True)]
    moved = [
        norm(wide(answer[change.path]) - wide(change.ref_new.value)) / scale
        for answer in replay.on_other_keys
        for change, scale in zip(replay.changes, scales, strict=True)
    ]
    return float(np.linalg.norm(apart) / (np.linalg.norm(moved) / len(replay.on_other_keys) ** 0.5))


def drawn(replay: Replay) -> str:
    """A leaf that agrees, though another key would change it: the draws are one device's."""
    if not replay.on_other_keys:
        return ""
    evidence, reference = replay.evidence, replay.reference
    pairs = zip(evidence.leaves, evidence.changes, strict=True)
    equal = [c for leaf, c in pairs if leaf.status == "equal" and c.new.inexact]
    args = reference.key_of(reference.number), reference.before, reference.batch
    key, state, batch = map_keys(OTHER_KEYS[0], args)
    leaves = reference.again(batch, key=key, state=state)
    for change in equal:
        value = read(leaves[change.path], change.path).value
        if _moved(change, value, replay):
            return change.path
    return ""


def _moved(change: Change, value: np.ndarray, replay: Replay) -> bool:
    """Whether a value is another one than the reference's, beyond rounding and luck.

    Counts and shares of examples agree too easily to tell anything.
    """
    rtol, sizes = replay.evidence.rtol, replay.evidence.sizes
    if change.metric and flips(change, sizes.real, rtol):
        return False
    return norm(wide(value) - wide(change.ref_new.value)) > 10 * max(
        change.error, rtol * change.scale
    )
