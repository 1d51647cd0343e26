"""Arrays as they lie on devices: read them, and ask whether their replicas agree."""

import contextlib
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh


@dataclass(frozen=True)
class Copy:
    """What one device holds of an array: rows `index`, (start, stop) per dimension."""

    device: str
    index: tuple[tuple[int, int], ...]
    value: np.ndarray


@dataclass(frozen=True)
class Placed:
    """A leaf on the host: the whole value, each device's copy, and its dtype ("": a Python value).

    Typed PRNG keys are held as the uint32 data they wrap.
    """

    value: np.ndarray
    copies: tuple[Copy, ...] = ()
    dtype: str = ""

    @property
    def inexact(self) -> bool:
        return jnp.issubdtype(self.value.dtype, jnp.inexact)

    @property
    def finite(self) -> bool:
        return not self.inexact or bool(np.isfinite(self.value).all())

    def at(self, copy: Copy) -> np.ndarray:
        """The part of the whole that `copy` should hold."""
        return self.value[tuple(slice(start, stop) for start, stop in copy.index)]


def read(leaf: Any, path: str, stacked: bool = False) -> Placed:
    """Copy a leaf to the host; if `stacked`, its first axis counts devices, one copy on each."""
    if not isinstance(leaf, jax.Array):
        value, dtype = np.array(leaf), str(leaf.dtype) if hasattr(leaf, "dtype") else ""
        return _unstack(value, (), dtype, path) if stacked else Placed(value, (), dtype)
    if leaf.is_deleted():
        raise ValueError(
            f"{path} has been deleted: a step that was called before has donated it. Make it "
            "anew, or keep a copy (jax.tree.map(jnp.copy, state)) before such a step."
        )
    if not leaf.is_fully_addressable:
        raise ValueError(
            f"{path} lies partly on another process's devices, which this one can't read. Run "
            "the comparison in one process with simulated devices."
        )
    dtype = str(leaf.dtype)
    numbers = key_data(leaf) if is_key(leaf) else leaf
    copies = tuple(
        Copy(name_of(shard.device), _bounds(shard.index, numbers.shape), np.array(shard.data))
        for shard in sorted(numbers.addressable_shards, key=lambda shard: shard.device.id)
    )
    value = np.array(numbers)
    return _unstack(value, copies, dtype, path) if stacked else Placed(value, copies, dtype)


def replicas_that_differ(placed: Placed) -> tuple[list[Copy], int]:
    """The copies that aren't, bit for bit, what most devices hold in their place; how many lie.

    Returns the odd ones and the number of copies they were compared with, themselves included.
    """
    groups = defaultdict(list)
    for copy in placed.copies:
        groups[copy.index].append(copy)
    odd, seen = [], 0
    for group in groups.values():
        bits = [copy.value.tobytes() for copy in group]
        common = Counter(bits).most_common(1)[0][0]
        strangers = [copy for copy, own in zip(group, bits, strict=True) if own != common]
        seen += len(group) if strangers else 0
        odd += strangers
    return odd, seen


def mesh_of_one(device: jax.Device) -> contextlib.AbstractContextManager:
    """Under `jax.set_mesh` arrays on one device are refused, unless the mesh has one device too."""
    mesh = jax.sharding.get_abstract_mesh()
    if mesh.empty or mesh.size == 1:
        return contextlib.nullcontext()
    grid = np.array([device]).reshape([1] * len(mesh.axis_names))
    return jax.set_mesh(Mesh(grid, mesh.axis_names, axis_types=mesh.axis_types))


def is_data(leaf: Any) -> bool:
    """Whether a leaf is an array or a number, and not a function that a module carries along."""
    return hasattr(leaf, "dtype") or isinstance(leaf, bool | int | float | complex)


def is_key(leaf: Any) -> bool:
    """Whether a leaf holds typed random keys (jax.random.key)."""
    return hasattr(leaf, "dtype") and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def key_data(keys: jax.Array) -> jax.Array:
    """The uint32 data of typed keys, placed as they are."""
    devices = keys.sharding.device_set
    alone = mesh_of_one(min(devices, key=lambda d: d.id)) if len(devices) == 1 else None
    with alone or contextlib.nullcontext():
        return jax.random.key_data(keys)


def _unstack(value: np.ndarray, copies: tuple[Copy, ...], dtype: str, path: str) -> Placed:
    if value.ndim == 0:
        raise ValueError(f"{path} has no leading device axis, which stacked=True expects.")
    index = tuple((0, size) for size in value.shape[1:])
    names = [copy.device for copy in sorted(copies, key=lambda copy: copy.index[0])]
    if len(set(names)) != len(value):
        names = [f"entry {i}" for i in range(len(value))]
    return Placed(value[0], tuple(map(Copy, names, [index] * len(value), value)), dtype)


def _bounds(index: tuple[slice, ...], shape: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
    return tuple(part.indices(size)[:2] for part, size in zip(index, shape, strict=True))


def name_of(device: jax.Device) -> str:
    """How reports call a device."""
    return f"{device.platform}:{device.id}"
