"""Pictures side by side: titles, arrays with their axes named, meshes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import jax

from course_utils.display import show_figure
from course_utils.paper import Paper, text_width
from course_utils.placement._blocks import LINE, Blocks, draw, layout, numbers, style_of
from course_utils.placement._holding import Holding, holding

PAGE = 9.2  # inches: what a notebook shows without shrinking it
MOST_PIECES = 64
SIDE = 0.42  # for the label of the axis that runs downwards
CELL = (0.27, 0.24)
BETWEEN = 0.3


@dataclass(frozen=True)
class Picture:
    """One array, and how it is laid out."""

    held: Holding
    blocks: Blocks

    @property
    def width(self) -> float:
        """Inches."""
        array = 2 * SIDE + self.blocks.whole_width
        if self.blocks.depth:
            array += text_width(self.behind) - SIDE + 0.1
        texts = [self.held.caption, str(self.held.shape), _above(self.held)]
        columns = len(self.held.grid.ids[0])
        side = text_width(f"{self.held.grid.down} \u2193") + 0.1 if self.held.grid.down else 0
        mesh = CELL[0] * columns + 2 * side
        title = text_width(self.held.title, bold=True, size=10)
        return max(array, mesh, title, *map(text_width, texts)) + 0.1

    @property
    def mesh_top(self) -> float:
        """Inches from the top to the mesh: title, shape, array, its lower axis, caption."""
        lines = 2.8 + self.under + 0.2 + len(self.held.caption.splitlines()) + 1.6
        return lines * LINE + self.blocks.above + self.blocks.height

    @property
    def under(self) -> float:
        """Lines below the array that name its last axis."""
        return 2.4 if len(self.held.shape) > 1 else 0.4

    @property
    def height(self) -> float:
        """Inches."""
        return self.mesh_top + CELL[1] * len(self.held.grid.ids) + 0.1

    @property
    def behind(self) -> str:
        """The label of the axes that run away from the reader."""
        leading = range(len(self.held.shape) - 2)
        return "\n".join(_axis(self.held, axis) for axis in leading)


def show_placement(arrays: Mapping[str, jax.Array | jax.ShapeDtypeStruct]) -> None:
    """Show a picture for each array: its pieces, the devices that hold them, and their mesh.

    The last two axes are drawn downwards and across; those before them run away from the reader,
    and where one of them is split, its parts stand side by side. So arrays of any rank can be drawn,
    also those that `jax.debug.visualize_array_sharding` refuses. Proportions are only hinted at;
    the numbers at the axes are the sizes. Only placements are looked at: a ShapeDtypeStruct with a
    sharding is drawn before the array exists.

    Args:
        arrays: a title for each array.

    Raises:
        ValueError: nothing to draw, an axis that its mesh axis doesn't divide, or more pieces
            than can be told apart.
        TypeError: something that has no placement, such as a NumPy array.
    """
    if not arrays:
        raise ValueError("show_placement has nothing to draw: `arrays` is empty.")
    held = [holding(title, array) for title, array in arrays.items()]
    for one in held:
        if len(one.pieces) > MOST_PIECES:
            raise ValueError(f"{one.title!r} has {len(one.pieces)} pieces: too many to draw.")
    lines = _lines([Picture(one, layout(one)) for one in held])
    paper = Paper(
        max(map(_width, lines)), sum(max(picture.height for picture in line) for line in lines)
    )
    bottom = 0.0
    for line in lines:
        left = 0.0
        bottom += max(picture.height for picture in line)
        for picture in line:
            _draw(paper, picture, left, bottom - picture.height)
            left += picture.width + BETWEEN
    show_figure(paper.figure, alt="; ".join(map(in_words, held)))


def in_words(held: Holding) -> str:
    """A placement as one would tell it to a person who can't see the picture."""
    caption = held.caption.replace("\n", ", ")
    text = f"{held.title}, shape {held.shape}: {caption}"
    if len(held.pieces) == 1:
        return text
    axes = ", ".join(f"axis {axis} {words}" for axis, words in enumerate(held.axes))
    found = held.pieces.items()
    where = ", ".join(
        f"[{', '.join(f'{a}:{b}' for a, b in bounds)}] on {numbers(ids)}" for bounds, ids in found
    )
    return f"{text}; {axes}; {len(held.pieces)} pieces: {where}"


def _width(line: Sequence[Picture]) -> float:
    return sum(picture.width for picture in line) + BETWEEN * (len(line) - 1)


def _lines(pictures: Sequence[Picture]) -> list[Sequence[Picture]]:
    """As many pictures on each line as fit on all of them; one that is wider stands alone."""
    for most in range(len(pictures), 0, -1):
        # 4 become 2 and 2, not 3 and 1.
        even = -(-len(pictures) // -(-len(pictures) // most))
        lines = [pictures[i : i + even] for i in range(0, len(pictures), even)]
        if all(_width(line) <= PAGE for line in lines):
            return lines
    return [[picture] for picture in pictures]


def _draw(paper: Paper, picture: Picture, left: float, top: float) -> None:
    held, blocks = picture.held, picture.blocks
    middle = left + picture.width / 2
    paper.text(middle, top + LINE * 0.8, held.title, fontsize=10, weight="bold")
    paper.text(middle, top + LINE * 1.8, str(held.shape))
    wide = blocks.whole_width + (text_width(picture.behind) if blocks.depth else 0)
    x = left + max(SIDE, (picture.width - wide) / 2)
    y = top + LINE * 2.8
    draw(paper, held, blocks, x, y)
    _name_axes(paper, picture, x, y + blocks.above)
    under = y + blocks.above + blocks.height + LINE * picture.under
    paper.text(middle, under + LINE * 0.2, held.caption, va="top")
    _draw_mesh(paper, held, middle, top + picture.mesh_top)


def _name_axes(paper: Paper, picture: Picture, x: float, y: float) -> None:
    """Beside the first block the axis that runs down, below it the other, behind it the rest."""
    held, blocks = picture.held, picture.blocks
    rank = len(held.shape)
    if rank:
        down = _axis(held, max(rank - 2, 0))
        paper.text(x - SIDE / 2, y + blocks.height / 2, down, rotation=90)
    if rank > 1:
        across = _axis(held, rank - 1)
        paper.text(x + blocks.whole_width / 2, y + blocks.height + 0.05, across, va="top")
    if blocks.depth:
        right = x + blocks.whole_width + 0.06
        paper.text(right, y + blocks.height - blocks.depth / 2, picture.behind, ha="left")


def _axis(held: Holding, axis: int) -> str:
    return f"axis {axis}: {held.shape[axis]}\n{held.axes[axis]}"


def _above(held: Holding) -> str:
    return f"devices, mesh axis {held.grid.across} \u2192"


def _draw_mesh(paper: Paper, held: Holding, middle: float, top: float) -> None:
    grid, styles = held.grid, style_of(held)
    width = CELL[0] * len(grid.ids[0])
    if held.devices > 1 and grid.across:
        paper.text(middle, top - LINE * 0.6, _above(held))
    for row, ids in enumerate(grid.ids):
        for column, device in enumerate(ids):
            x, y = middle - width / 2 + column * CELL[0], top + row * CELL[1]
            paper.box((x, y), CELL, *styles[device])
            paper.label(x + CELL[0] / 2, y + CELL[1] / 2, str(device), *styles[device])
    if grid.down:
        side = middle - width / 2 - 0.06
        paper.text(side, top + CELL[1] * len(grid.ids) / 2, f"{grid.down} \u2193", ha="right")
