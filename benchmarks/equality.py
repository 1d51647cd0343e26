"""Before anything is timed: do all ways to train compute the same?

From the same parameters, on the same batches in the same order, each takes ten steps of plain gradient
descent. Then its parameters are compared with those of the same steps in float64.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.problem import Layers

# Of how far training has moved a parameter. Storing the parameters in float32 alone costs 3e-6
# here, for every way alike; a gradient that is off by 0.1 % would show as 1e-3.
TOLERANCE = 3e-5


class Different(RuntimeError):
    """Some ways to train don't compute the same, or nothing says so; the message names them."""


def differences(start: Layers, reference: Layers, found: Mapping[str, Layers]) -> list[Any]:
    """Return for each way {"name", "leaf", "difference"}: its worst leaf, and by how much.

    The difference is the largest of the leaf's elements, over the largest change that training
    made to that leaf; infinite for a leaf of the wrong shape.
    """
    return [{"name": name, **_worst(start, reference, layers)} for name, layers in found.items()]


def judge(rows: Sequence[Mapping[str, Any]], accepted: Mapping[str, float] = {}) -> None:
    """Raise Different, naming each way that differs by more than `TOLERANCE`.

    `accepted` names ways that compute in fewer bits, with what is accepted of them instead.
    """

    def holds(row: Mapping[str, Any]) -> bool:  # a NaN does not
        return row["difference"] <= accepted.get(row["name"], TOLERANCE)

    if wrong := [row for row in rows if not holds(row)]:
        named = ", ".join(
            f"{row['name']} ({row['leaf']}: {row['difference']:.1e})" for row in wrong
        )
        raise Different(
            f"After the same steps these have other parameters than the reference: {named}; "
            f"{TOLERANCE:.0e} is accepted. They were not timed: they don't do the same work."
        )


def _worst(start: Layers, reference: Layers, layers: Layers) -> dict[str, Any]:
    if len(layers) != len(reference):
        return {"leaf": f"{len(layers)} layers", "difference": float("inf")}
    leaves = []
    for number, parts in enumerate(zip(start, reference, layers, strict=True)):
        for kind, before, right, here in zip("Wb", *parts, strict=True):
            difference = float("inf")
            if here.shape == right.shape:
                difference = float(np.abs(here - right).max() / np.abs(right - before).max())
            leaves.append({"leaf": f"{kind} of layer {number}", "difference": difference})
    return max(leaves, key=lambda leaf: np.nan_to_num(leaf["difference"], nan=np.inf))
