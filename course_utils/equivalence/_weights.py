"""Which shards of the batch an update is made of, and how much each of them counts."""

from collections.abc import Mapping, Sequence

import numpy as np

from course_utils.equivalence._change import Change, norm, wide

_CLEAN = 0.02


def weights(
    target: Mapping[str, np.ndarray],
    answers: Sequence[Mapping[str, np.ndarray]],
    changes: Sequence[Change],
) -> np.ndarray | None:
    """Solve target = sum of weight x answer, for all updates at once.

    Args:
        target: {path: new value}.
        answers: the same for each shard alone.
        changes: the leaves to look at, with updates that are linear in the gradient.

    Returns:
        A weight for each answer, None where no weights fit or many would.
    """
    if not answers or not changes:
        return None
    aim = _updates(target, changes)
    columns = np.stack([_updates(answer, changes) for answer in answers], axis=1)
    if not (np.isfinite(aim).all() and np.isfinite(columns).all() and norm(aim)):
        return None
    found, _, rank, _ = np.linalg.lstsq(columns, aim, rcond=1e-5)
    if rank < len(answers) or len(aim) <= len(answers):
        return None
    clean = norm(columns @ found - aim) <= _CLEAN * norm(aim)
    return found if clean else None


def shares(found: np.ndarray) -> str:
    """Weights in words."""
    return ", ".join(f"{round(float(weight), 3) + 0.0:.2g}" for weight in found)


def _updates(values: Mapping[str, np.ndarray], changes: Sequence[Change]) -> np.ndarray:
    # Leaves count alike, however long their updates are.
    parts = [
        (np.real(wide(values[c.path])) - np.real(wide(c.old.value))).ravel()
        / (norm(c.ref_update) or 1.0)
        for c in changes
    ]
    return np.concatenate(parts)
