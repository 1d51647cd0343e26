"""Updates that are right in all but their length, by a factor that means nothing."""

import numpy as np

from course_utils.equivalence._change import Change, fit, is_clean
from course_utils.equivalence._meanings import after_the_gradient, shown_sum
from course_utils.equivalence._replay import Replay

_FEWEST = 8  # entries in which another direction would show


def length(replay: Replay) -> str:
    """Leaves that all go the reference's way, so many times as far: whatever bends does it."""
    changes, evidence = replay.linear, replay.evidence
    times = [_times(change, evidence.rtol) for change in changes]
    if sum(change.new.value.size for change in changes) < _FEWEST or not all(times):
        return ""
    if np.ptp(times) > 0.01 * max(times):
        return ""
    path = changes[0].path
    more = f" (so {'does' if len(times) == 2 else 'do'} {len(times) - 1} more)"
    found = (
        f"{path} moves {times[0]:.4g} times as far as the reference's, in its direction"
        f"{more if len(times) > 1 else ''}. "
    )
    if after_the_gradient(evidence, path):
        return (
            f"{found}The gradient is right, since the optimizer's moments agree or the metrics show "
            "it, and what follows is scaled: a learning rate, or its schedule."
        )
    return found + (shown_sum(evidence) or _LENGTH)


_LENGTH = (
    "Only the length is wrong: clipping (or normalising) that sees another length than one "
    "device's, such as that of a sum which is divided afterwards, or a learning rate. Sum, reduce, "
    "divide, then clip; and compare once without clipping, on both sides."
)


def _times(change: Change, rtol: float) -> float:
    found = fit(change)
    straight = found and not found.decay and is_clean(change, found, rtol) and found.tells
    return max(found.factor, 0.0) if straight else 0.0
