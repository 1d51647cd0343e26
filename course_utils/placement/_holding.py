"""What is to be drawn of an array: its pieces, who holds them, what splits each axis, the mesh."""

from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax.sharding import NamedSharding

Span = tuple[int, int]
Pieces = dict[tuple[Span, ...], list[int]]


@dataclass(frozen=True)
class Grid:
    """The devices as a mesh arranges them, two of its axes drawn.

    Attributes:
        ids: device numbers, rows of equal length.
        down, across: the names of the axes, "" where there is none.
    """

    ids: tuple[tuple[int, ...], ...]
    down: str
    across: str


@dataclass(frozen=True)
class Holding:
    """An array's placement.

    Attributes:
        title: what the reader calls the array.
        shape: of the whole array.
        pieces: bounds of each distinct piece, and the devices that hold it.
        axes: for each axis what splits it: "whole", or for example "split by data".
        copied_over: the mesh axes along which devices hold copies of the same piece.
        grid: the devices.
    """

    title: str
    shape: tuple[int, ...]
    pieces: Pieces
    axes: tuple[str, ...]
    copied_over: tuple[str, ...]
    grid: Grid

    @property
    def devices(self) -> int:
        """How many devices hold a piece."""
        return sum(len(row) for row in self.grid.ids)

    @property
    def caption(self) -> str:
        """What each device holds, and how many copies there are."""
        if self.devices == 1:
            return "whole on the one device"
        if len(self.pieces) == 1:
            return f"whole on each of {self.devices} devices"
        held = {tuple(stop - start for start, stop in bounds) for bounds in self.pieces}
        text = f"on each device: {' or '.join(map(str, sorted(held)))}"
        copies = self.devices // len(self.pieces)
        over = f" (over {', '.join(self.copied_over)})" if self.copied_over else ""
        return text + (f"\n{copies} copies of each piece{over}" if copies > 1 else "")


def pieces(array: jax.Array | jax.ShapeDtypeStruct) -> Pieces:
    """The distinct pieces of an array: their bounds on every axis, and who holds them.

    Only the placement is looked at, no data: the array may still be planned (a ShapeDtypeStruct
    with a sharding), or lie on devices of other processes.

    Returns:
        For the (start, stop) bounds of each piece, the ids of its devices, in order.

    Raises:
        ValueError: an axis doesn't divide, or the mesh is abstract.
    """
    found: Pieces = {}
    for device, index in array.sharding.devices_indices_map(array.shape).items():
        bounds = tuple(
            part.indices(size)[:2] for part, size in zip(index, array.shape, strict=True)
        )
        found.setdefault(bounds, []).append(device.id)
    return {bounds: sorted(found[bounds]) for bounds in sorted(found)}


def holding(title: str, array: Any) -> Holding:
    """What to draw of `array`; TypeError or ValueError, by its title, if nothing can be drawn."""
    if isinstance(array, jax.core.Tracer) or not hasattr(array, "shape"):
        raise TypeError(f"{title!r}: expected a jax.Array, got {type(array).__name__}.")
    if getattr(array, "sharding", None) is None:
        raise TypeError(
            f"{title!r}: a {type(array).__name__} has no placement; jax.device_put gives it one."
        )
    try:
        found = pieces(array)
    except ValueError as error:
        raise ValueError(f"{title!r} can't be drawn: {_reason(array) or error}") from error
    names = _names(array)
    parts = [len({bounds[axis] for bounds in found}) for axis in range(len(array.shape))]
    words = tuple(
        "whole" if count == 1 else f"split by {', '.join(by)}" if by else f"in {count} parts"
        for count, by in zip(parts, names, strict=True)
    )
    copied = _copied_over(array, names)
    return Holding(title, tuple(array.shape), found, words, copied, _grid(array))


def _names(array: Any) -> list[tuple[str, ...]]:
    """The mesh axes that split each axis of the array, where its sharding names them."""
    spec = tuple(getattr(array.sharding, "spec", ()))
    spec += (None,) * (len(array.shape) - len(spec))
    return [() if by is None else (by,) if isinstance(by, str) else tuple(by) for by in spec]


def _copied_over(array: Any, names: list[tuple[str, ...]]) -> tuple[str, ...]:
    if not isinstance(array.sharding, NamedSharding):
        return ()
    used = {name for by in names for name in by}
    sizes = array.sharding.mesh.shape
    return tuple(name for name, size in sizes.items() if name not in used and size > 1)


def _grid(array: Any) -> Grid:
    if not isinstance(array.sharding, NamedSharding):
        return Grid((tuple(sorted(device.id for device in array.sharding.device_set)),), "", "")
    mesh = array.sharding.mesh
    ids = np.vectorize(lambda device: device.id, otypes=[int])(mesh.devices)
    rows = ids.reshape(-1, ids.shape[-1])
    down = ", ".join(mesh.axis_names[:-1])
    return Grid(tuple(tuple(map(int, row)) for row in rows), down, mesh.axis_names[-1])


def _reason(array: Any) -> str:
    """Which axis doesn't divide, and what would; "" if that is not the trouble."""
    if not isinstance(array.sharding, NamedSharding):
        return ""
    for axis, (size, by) in enumerate(zip(array.shape, _names(array), strict=True)):
        count = int(np.prod([array.sharding.mesh.shape[name] for name in by]))
        if size % count:
            return (
                f"axis {axis} has {size} entries, and {', '.join(by)} would split it in {count}. "
                f"Take a multiple of {count}, or leave that axis whole."
            )
    return ""
