"""Checkpoints of a run of many processes: process 0 writes and reads, the others are told."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax.experimental import multihost_utils


def save(path: Path, step: int, state: Any, settings: Mapping[str, Any]) -> None:
    """Write a replicated state to a .npz file; whatever kills us, the file is whole or the old one.

    Args:
        path: the file; its folder is made.
        step: how many steps the state has behind it.
        state: any pytree of arrays that are whole on this process.
        settings: what a run that goes on from here must have in common with this one.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.new")
    with temporary.open("wb") as file:
        leaves = jax.device_get(jax.tree.leaves(state))
        np.savez(file, *leaves, step=step, settings=json.dumps(settings))
        file.flush()
        os.fsync(file.fileno())  # or a crash of the machine could leave a new name without data
    temporary.replace(path)


def load(path: Path, like: Any, settings: Mapping[str, Any]) -> tuple[int, Any]:
    """Read what `save` wrote: the step, and a state of NumPy arrays with the structure of `like`.

    Raises:
        ValueError: the file is of a run with other settings.
    """
    with np.load(path) as file:
        written = json.loads(str(file["settings"]))
        if written != dict(settings):
            raise ValueError(
                f"{path} is a checkpoint of another run: it has {written}, this run "
                f"{dict(settings)}. Give this one another file, or delete that one."
            )
        structure = jax.tree.structure(like)
        leaves = [file[f"arr_{i}"] for i in range(structure.num_leaves)]
        return int(file["step"]), jax.tree.unflatten(structure, leaves)


def resume(path: Path | None, fresh: Any, settings: Mapping[str, Any]) -> tuple[int, Any]:
    """Where to go on: the same step and state in every process, bit for bit.

    Only process 0 looks at the file, for the others may run on other machines.

    Args:
        path: the checkpoint, if there is to be one; it may not exist yet.
        fresh: the state to start from where there is none; leaves of 32 bits.
        settings: see `save`.
    """
    step, state = 0, jax.device_get(fresh)
    if path and jax.process_index() == 0 and path.exists():
        step, state = load(path, fresh, settings)
    leaves, structure = jax.tree.flatten((np.int32(step), state))
    # The broadcast adds everyone's zeros to the values of process 0. As whole numbers: as
    # floats, -0.0 + 0.0 would lose its sign.
    bits = multihost_utils.broadcast_one_to_all([np.asarray(x).view(np.uint32) for x in leaves])
    same = [np.asarray(b).view(x.dtype) for b, x in zip(bits, leaves, strict=True)]
    step, state = jax.tree.unflatten(structure, same)
    return int(step), state
