"""What a report that finds no difference should still say."""

import warnings
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from course_utils.equivalence._compare import Change
from course_utils.equivalence._factors import is_moment
from course_utils.equivalence._report import Leaf


def notes(leaves: Sequence[Leaf], devices: set[Any], batches: Sequence[Any]) -> tuple[str, ...]:
    """Remarks on what the comparison didn't prove."""
    found = []
    if len(devices) <= 1:
        found.append("only one device was used, so nothing ran in parallel.")
    elif _whole_everywhere(batches):
        found.append("each device holds the whole batch, so they all do the same work.")
    unproved = [leaf.path for leaf in leaves if leaf.status == "unproved"]
    if unproved:
        found.append(
            f"nothing is proved about {', '.join(unproved[:6])}{' ...'[: 4 * (len(unproved) > 6)]}"
        )
    return tuple(found)


def nothing_proved(state: Sequence[Leaf], steps: int) -> str:
    """Why agreement means nothing here."""
    verdicts = " ".join(leaf.verdict for leaf in state)
    if "NaN" in verdicts or "inf" in verdicts:
        return (
            "both sides hold NaN or inf where they agree; training has broken down on one device "
            "too. Lower the learning rate or look for the first NaN there."
        )
    if "rounding" in verdicts:
        return (
            "all changes are lost in the rounding of the state's dtype: compare with a larger "
            "learning rate, more steps, or float32 parameters."
        )
    return (
        f"the reference step changes nothing but counters in {steps} step(s), so any step would "
        "agree. Is the new state returned, the learning rate above zero, the gradient alive?"
    )


def warn_if_a_factor_may_hide(leaves: Sequence[Leaf], changes: Sequence[Change], step: int) -> None:
    """Warn where all entries move by the same amount, and nothing shows the gradient's size."""
    shown = any(is_moment(leaf.path) or "grad" in leaf.path.lower() for leaf in leaves)
    updates = [
        np.abs(change.ref_update[change.ref_update != 0])
        for change in changes
        if not change.metric and change.new.inexact and np.isfinite(change.ref_update).all()
    ]
    big = [update for update in updates if update.size >= 8]
    if not shown and big and all(np.std(u) < 0.02 * np.mean(u) for u in big):
        warnings.warn(
            "All entries of a leaf move by the same amount, as with Adam's first step or with signs "
            "of gradients. Such an optimizer hides a gradient that is N times too large, and "
            "neither state nor metrics carry its moments or gradients: return them, or compare "
            "gradients with sgd_step.",
            stacklevel=4,
        )


def _whole_everywhere(batches: Sequence[Any]) -> bool:
    arrays = [leaf for leaf in jax.tree.leaves(batches) if isinstance(leaf, jax.Array)]
    return bool(arrays) and all(
        len(leaf.sharding.device_set) > 1 and leaf.sharding.is_fully_replicated for leaf in arrays
    )
