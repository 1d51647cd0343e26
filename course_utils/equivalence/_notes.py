"""What a report that finds no difference should still say."""

from collections.abc import Sequence
from typing import Any

import jax

from course_utils.equivalence._report import Leaf

PAIR = (
    "The reference step got the padded batch as a pair (batch, mask), since no reference_batches "
    "were given. If it takes batches as they are, pass reference_batches=[the unpadded batches], "
    "one for `batch` and one for each of `more_batches`."
)


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


def _whole_everywhere(batches: Sequence[Any]) -> bool:
    arrays = [leaf for leaf in jax.tree.leaves(batches) if isinstance(leaf, jax.Array)]
    return bool(arrays) and all(
        len(leaf.sharding.device_set) > 1 and leaf.sharding.is_fully_replicated for leaf in arrays
    )
