"""Draw which device holds which piece of an array."""

from collections.abc import Mapping, Sequence
from typing import Any

import jax

from course_utils.display import show_figure

Span = tuple[int, int]


def show_placement(
    arrays: Mapping[str, jax.Array], axes: Sequence[int] = (0, 1), columns: int = 5
) -> None:
    """Show a picture for each array: its pieces in colour, with the numbers of their devices.

    A picture shows two axes of an array, the first of them downwards. Arrays of any rank can be
    drawn, also those that `jax.debug.visualize_array_sharding` refuses. A piece that several
    devices hold names them all; an array that is whole everywhere is grey.

    Args:
        arrays: a title for each array; concrete arrays, all of whose pieces this process holds.
        axes: the two axes to draw; an array of one axis is drawn as rows.
        columns: pictures side by side.
    """
    from matplotlib import pyplot as plt

    rows = -(-len(arrays) // columns)
    width = min(len(arrays), columns)
    figure, grid = plt.subplots(
        rows, width, figsize=(2.2 * width, 2.7 * rows), squeeze=False, layout="constrained"
    )
    for picture in grid.flat:
        picture.axis("off")
    for picture, (title, array) in zip(grid.flat, arrays.items(), strict=False):
        _draw(picture, array, title, axes)
    show_figure(figure, alt="; ".join(_in_words(title, array) for title, array in arrays.items()))


def pieces(array: jax.Array) -> dict[tuple[Span, ...], list[int]]:
    """The distinct pieces of an array: their bounds on every axis, and who holds them.

    Returns:
        For the (start, stop) bounds of each piece, the ids of its devices, in order.
    """
    found: dict[tuple[Span, ...], list[int]] = {}
    for shard in array.addressable_shards:
        bounds = tuple(
            part.indices(size)[:2] for part, size in zip(shard.index, array.shape, strict=True)
        )
        found.setdefault(bounds, []).append(shard.device.id)
    return {bounds: sorted(ids) for bounds, ids in found.items()}


def _draw(picture: Any, array: jax.Array, title: str, axes: Sequence[int]) -> None:
    from matplotlib import colormaps
    from matplotlib.patches import Rectangle

    # Told apart by colour-blind readers, too; black, the first, would hide the numbers.
    palette = colormaps["okabe_ito"].colors[1:]
    found = _onto(pieces(array), axes)
    for rows, columns in found:
        ids = found[rows, columns]
        color = palette[ids[0] % len(palette)] if len(found) > 1 else "#d9d9d9"
        corner = (columns[0], rows[0])
        size = (columns[1] - columns[0], rows[1] - rows[0])
        picture.add_patch(Rectangle(corner, *size, facecolor=color, edgecolor="black"))
        middle = (corner[0] + size[0] / 2, corner[1] + size[1] / 2)
        picture.text(*middle, _numbers(ids), ha="center", va="center", fontsize=9)
    picture.axis("on")
    picture.set(
        xlim=(0, max(columns[1] for _, columns in found)),
        ylim=(max(rows[1] for rows, _ in found), 0),
        xticks=[],
        yticks=[],
    )
    picture.set_title(f"{title}\n{array.shape}", fontsize=9)


def _onto(
    found: Mapping[tuple[Span, ...], list[int]], axes: Sequence[int]
) -> dict[tuple[Span, Span], list[int]]:
    """Project pieces onto two axes; a missing axis counts as one entry."""
    flat: dict[tuple[Span, Span], set[int]] = {}
    for bounds, ids in found.items():
        down, across = (bounds[axis] if axis < len(bounds) else (0, 1) for axis in axes)
        flat.setdefault((down, across), set()).update(ids)
    return {place: sorted(ids) for place, ids in flat.items()}


def _numbers(ids: Sequence[int]) -> str:
    if len(ids) > 2 and list(ids) == list(range(ids[0], ids[-1] + 1)):
        return f"{ids[0]}-{ids[-1]}"
    return ",".join(map(str, ids))


def _in_words(title: str, array: jax.Array) -> str:
    found = pieces(array)
    if len(found) == 1:
        return f"{title}, shape {array.shape}: whole on {len(array.addressable_shards)} device(s)"
    return f"{title}, shape {array.shape}: {len(found)} pieces on {len(array.devices())} devices"
