"""Call a step, wait for it, and turn what goes wrong into an answer."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from course_utils.equivalence._copies import devices_of, own_copy
from course_utils.equivalence._placed import mesh_of_one

Step = Callable[..., tuple[Any, Any]]


def run_parallel(step: Step, arguments: tuple[Any, ...], number: int) -> tuple[Any, Any]:
    """`step(*arguments)` on copies, which it may donate; finished before anything else is queued.

    Raises:
        ValueError: the batch doesn't divide by the mesh, or an array is used after its donation.
        TypeError: the step doesn't return a pair.
    """
    try:
        return _finished(step, own_copy(arguments), "The parallel step")
    except Exception as error:
        if "divisib" in str(error) or "evenly divide" in str(error):
            raise ValueError(
                f"In step {number} an axis doesn't divide by the number of devices it is split "
                f"over; the batch's shapes are {_shapes(arguments[1])}. Leave a short last batch out, "
                "or pad it (pad_batch) and give the step a mask. JAX says: "
                + str(error).split("\n\n")[0]
            ) from error
        if "has been deleted" in str(error):
            raise ValueError(
                f"In step {number} the parallel step uses an array again that it has donated before "
                "(donate_argnums): use what the donating function returns, or don't donate. JAX "
                f"says: {error}"
            ) from error
        error.add_note(f"Raised by the parallel step, in step {number} of the comparison.")
        raise


def run_reference(
    step: Step, arguments: tuple[Any, ...], number: int, device: jax.Device, *, is_parallel: bool
) -> tuple[Any, Any]:
    """The same on one device; `is_parallel` if the parallel step itself is to run there.

    Raises:
        ValueError: the step doesn't run on one device, or returns arrays that lie on several.
        TypeError: the step doesn't return a pair.
    """
    try:
        with mesh_of_one(device):
            result = _finished(step, own_copy(arguments), "The reference step")
    except Exception as error:
        if is_parallel:
            raise ValueError(_BOUND.format(problem=str(error).split("\n\n")[0])) from error
        error.add_note(f"Raised by the reference step, in step {number} of the comparison.")
        raise
    if len(devices_of(result)) > 1:
        raise ValueError(
            "The reference step has used several devices: what it returns lies on "
            f"{len(devices_of(result))}. A parallel step compared with itself proves nothing; "
            "pass reference=<a step that runs on one device>."
        )
    return result


_BOUND = (
    "The parallel step doesn't run on one device: it is bound to its mesh, as steps with "
    "shard_map or sharding constraints are. Pass reference=<the same step for one device>. "
    "On one device it raised: {problem}"
)


def _finished(step: Step, arguments: tuple[Any, ...], name: str) -> tuple[Any, Any]:
    result = step(*arguments)
    if not (isinstance(result, tuple) and len(result) == 2):
        raise TypeError(
            f"{name} must return (state, metrics); it returned {type(result).__name__}. Wrap it: "
            "lambda state, batch: (new_state, metrics)."
        )
    # Simulated devices share the machine's cores: with many steps in flight a collective can
    # starve until XLA aborts the process.
    return jax.block_until_ready(result)


def _shapes(tree: Any) -> str:
    shapes = [str(np.shape(leaf)) for leaf in jax.tree.leaves(tree)]
    return ", ".join(shapes[:8]) + (", ..." if len(shapes) > 8 else "")
