"""How far a training step goes, and whether in the right direction."""

from typing import Any

import jax
import numpy as np


def along(new: Any, wanted: Any, old: Any) -> tuple[float, float]:
    """Where `new` lies on the way from `old` to `wanted`, three trees of arrays alike.

    Returns:
        How far it has gone, as a fraction of that way: 1.0 is there, 2.0 twice too far; and the
        cosine of the angle between the way it went and the way it should: 1.0 is no detour. Both
        are 0.0 for one that went nowhere.
    """
    flat = [
        np.concatenate([np.ravel(x).astype(np.float64) for x in jax.tree.leaves(tree)])
        for tree in jax.device_get((new, wanted, old))
    ]
    way, went = flat[1] - flat[2], flat[0] - flat[2]
    length = float(np.linalg.norm(went))
    if length == 0:
        return 0.0, 0.0
    return float(went @ way / (way @ way)), float(went @ way / length / np.linalg.norm(way))
