"""How often each shard counts in the update, compared with what it counts on one device."""

from collections.abc import Sequence

import numpy as np

from course_utils.equivalence._change import wide
from course_utils.equivalence._replay import Answer, Replay
from course_utils.equivalence._shards import uneven
from course_utils.equivalence._weights import shares, weights

_NEGLIGIBLE = 0.03


def unequal(replay: Replay, answers: Sequence[Answer], counts: Sequence[int], what: str) -> str:
    """Shards (or micro-batches, as `what` says) that are lost, or count too often or too little.

    Those of `counts` 0 hold no real example: their update is nothing, and nothing is said of them.
    """
    real = [i for i, _ in enumerate(answers) if counts[i]]
    alone = [answers[i] for i in real]
    found = weights({c.path: wide(c.new.value) for c in replay.linear}, alone, replay.linear)
    if found is None:
        return _nonlinear(replay, answers, real, what)
    held = np.array([counts[i] for i in real])
    times = found / _right(replay, alone, held)
    counted = [str(real[i]) for i in np.flatnonzero(np.abs(times) > _NEGLIGIBLE)]
    lost = [str(real[i]) for i in np.flatnonzero(np.abs(times) <= _NEGLIGIBLE)]
    if len(counted) == 1 and len(found) > 1:
        return _only(what, counted[0])
    if lost:
        return (
            f"{what} {', '.join(lost)} of the batch doesn't count, with {', '.join(counted)} "
            f"weighted {shares(found[np.abs(times) > _NEGLIGIBLE])}: its gradient is lost, or its "
            "examples are left out."
        )
    return "" if _alike(times) else _weighted(times, held, counts, what)


def _right(replay: Replay, alone: Sequence[Answer], held: np.ndarray) -> np.ndarray:
    """How often the shards count in the reference's update.

    As often as they hold examples, if the step is linear. Where it clips, each shard's own update
    is clipped as well, so that how often it counts has to be found out in the same way.
    """
    wanted = {change.path: wide(change.ref_new.value) for change in replay.linear}
    found = weights(wanted, alone, replay.linear)
    clear = found is not None and (found > 1e-3 * np.abs(found).max()).all()
    return found if clear else held / held.sum()


def _weighted(times: np.ndarray, held: np.ndarray, counts: Sequence[int], what: str) -> str:
    if what == "shard" and _alike(times * held):
        return f"a mean of means over ragged shards: {uneven(counts)}"
    return (
        f"the {what}{'e' * what.endswith('ch')}s of the batch count {shares(times)} times what they "
        "count on one device: their weights aren't those of a mean over all examples."
    )


def _alike(values: np.ndarray) -> bool:
    return bool(np.ptp(values) <= _NEGLIGIBLE * np.abs(values).max())


def _nonlinear(replay: Replay, answers: Sequence[Answer], real: Sequence[int], what: str) -> str:
    """Adam's parameters, say, that are those of one shard."""
    for number in real if len(real) > 1 else ():
        if replay.explains([answers[number]]):
            return _only(what, str(number))
    return ""


def _only(what: str, number: str) -> str:
    return f"only {what} {number} of the batch counts: the others' gradients are lost."
