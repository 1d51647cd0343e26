"""Copies of trees on one device or many, and what their placement tells of devices and meshes."""

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding

from course_utils.equivalence._placed import is_key, key_data, mesh_of_one, name_of
from course_utils.equivalence._shards import merged


def own_copy(tree: Any) -> Any:
    """The same arrays in the same places, in memory that a step may donate."""

    def copy(leaf: Any) -> Any:
        if not isinstance(leaf, jax.Array):
            return np.array(leaf) if isinstance(leaf, np.ndarray) else leaf
        if is_key(leaf) or leaf.weak_type:
            return jnp.copy(leaf)
        # Through the host, since jnp.copy compiles a program for each shape and placement.
        return jax.device_put(np.array(leaf), leaf.sharding if leaf.committed else None)

    return jax.tree.map(copy, tree)


def on_one_device(
    tree: Any, device: jax.Device, *, first_copy: bool = False, leading: int = 0
) -> Any:
    """Copies of the whole arrays, committed to `device`.

    `first_copy` keeps the first entry of a leading device axis; `leading` axes are merged with
    the next one.
    """

    def move(leaf: Any) -> Any:
        if not hasattr(leaf, "dtype"):
            return leaf  # a Python number stays one, so that it doesn't decide any dtype
        if is_key(leaf):
            data = jax.device_put(whole(key_data(leaf)), device)
            with mesh_of_one(device):
                return jax.random.wrap_key_data(data, impl=jax.random.key_impl(leaf))
        if getattr(leaf, "weak_type", False) and not (first_copy or leading):
            with mesh_of_one(device):
                return jnp.copy(jax.device_put(leaf, device))
        # Through the host: an array with Explicit axes would bring its mesh along.
        return jax.device_put(whole(leaf), device)

    def whole(leaf: Any) -> np.ndarray:
        value = np.array(leaf)
        return value[0].copy() if first_copy else merged(value, leading)

    return jax.tree.map(move, tree)


def devices_of(tree: Any) -> set[jax.Device]:
    """Every device that holds a part of an array in `tree`."""
    return set().union(*(leaf.sharding.device_set for leaf in _arrays(tree)))


def mesh_axes(tree: Any) -> dict[str, int]:
    """Sizes of the mesh axes that the arrays in `tree` know of, those that split something first."""
    used: dict[str, int] = {}
    known: dict[str, int] = {}
    for leaf in _arrays(tree):
        if isinstance(leaf.sharding, NamedSharding):
            sizes = dict(leaf.sharding.mesh.shape)
            known |= sizes
            for part in leaf.sharding.spec:
                names = part if isinstance(part, tuple) else (part,)
                used |= {name: sizes[name] for name in names if name in sizes}
    return used | {name: size for name, size in known.items() if name not in used}


def holds_keys(tree: Any) -> bool:
    """Whether a tree holds typed keys, or arrays that look like the older kind."""
    return any(is_key(leaf) or _old_style(leaf) for leaf in jax.tree.leaves(tree))


def map_keys(function: Callable[[jax.Array], jax.Array], tree: Any) -> Any:
    """The tree, which lies on one device, with each of its random keys made into another."""

    def change(leaf: Any) -> Any:
        if not (is_key(leaf) or _old_style(leaf)):
            return leaf
        with mesh_of_one(next(iter(leaf.devices()))):
            keys = leaf.reshape(-1) if is_key(leaf) else leaf[None]
            return jax.vmap(function)(keys).reshape(leaf.shape)

    return jax.tree.map(change, tree)


def places_of(tree: Any) -> dict[str, dict[str, int]]:
    """Where each device, by its name, lies along each axis of the meshes that `tree` knows of."""
    places: dict[str, dict[str, int]] = {}
    for leaf in _arrays(tree):
        if isinstance(leaf.sharding, NamedSharding):
            mesh = leaf.sharding.mesh
            for index, device in np.ndenumerate(mesh.devices):
                at = dict(zip(mesh.axis_names, index, strict=True))
                places.setdefault(name_of(device), {}).update(at)
    return places


def _old_style(leaf: Any) -> bool:
    return getattr(leaf, "dtype", None) == np.uint32 and np.shape(leaf) == (2,)


def _arrays(tree: Any) -> Iterator[jax.Array]:
    return (leaf for leaf in jax.tree.leaves(tree) if isinstance(leaf, jax.Array))
