"""Would this step let a gradient of the wrong size through?"""

import contextlib
import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from course_utils.equivalence._change import Change, norm, wide
from course_utils.equivalence._factors import is_moment
from course_utils.equivalence._placed import read
from course_utils.equivalence._shards import shards_of


def hides_the_size(
    run: Callable[[Any], dict[str, Any]], batch: Any, changes: Sequence[Change]
) -> bool:
    """Whether the reference's first step has the same length on each half of the batch.

    Two halves have gradients of different lengths. Updates that differ in direction but not in
    length are clipped or normalised, or have their signs taken: no such update can show that a
    gradient is N times too large. Moments are asked where there are any, since Adam's
    parameters hide the size while its moments show it.
    """
    if any("grad" in change.path.lower() for change in changes if change.metric):
        return False
    floats = [change for change in changes if not change.metric and change.new.inexact]
    asked = [change for change in floats if is_moment(change.path)] or floats
    whole = math.hypot(*(norm(change.ref_update) for change in asked))
    if not whole or any(change.ref_update.size and not change.ref_new.finite for change in asked):
        return False
    with contextlib.suppress(Exception):  # the reference may not take half a batch
        states = [run(half) for half in shards_of(batch, 2)]
        return bool(states) and all(_same_length(asked, state, whole) for state in states)
    return False


def warn() -> None:
    """Say what the comparison can't tell, where `hides_the_size`."""
    warnings.warn(
        "This step's updates have the same length whatever the gradient's: it clips or normalises "
        "gradients, or takes their signs, as Adam's first step does. A gradient that is N times "
        "too large hides behind that, and nothing in state or metrics shows it. Return the "
        "gradients (or their norm) as metrics named 'gradient...', or compare them with sgd_step.",
        stacklevel=4,
    )


def _same_length(asked: Sequence[Change], state: dict[str, Any], whole: float) -> bool:
    length, apart = 0.0, 0.0
    for change in asked:
        update = wide(read(state[change.path], change.path).value) - wide(change.ref_old.value)
        length = math.hypot(length, norm(update))
        apart = math.hypot(apart, norm(update - change.ref_update))
    return abs(length / whole - 1) < 2e-3 and apart > 0.05 * whole
