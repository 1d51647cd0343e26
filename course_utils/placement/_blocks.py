"""The array: blocks of rows and columns, with depth where it has more than two axes."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from course_utils.paper import COLORS, WHOLE, Paper, text_width
from course_utils.placement._holding import Holding, Span

DEPTH = 0.3  # inches, to the right and upwards
GAP = 0.25
LINE = 0.17
Style = tuple[str, bool]


@dataclass(frozen=True)
class Blocks:
    """How an array is laid out, in inches.

    Attributes:
        fronts: for each block the bounds on all axes but the last two.
        rows, columns: the ranges that the drawn axes are cut into.
        width, height: of a block's front.
        depth: of a block, 0 for arrays of up to two axes.
    """

    fronts: tuple[tuple[Span, ...], ...]
    rows: tuple[Span, ...]
    columns: tuple[Span, ...]
    width: float
    height: float
    depth: float

    @property
    def whole_width(self) -> float:
        """Of all blocks side by side."""
        count = len(self.fronts)
        return count * (self.width + self.depth) + (count - 1) * GAP

    @property
    def above(self) -> float:
        """Room above the fronts: the depth, and a line for the block's bounds."""
        return self.depth + (LINE if len(self.fronts) > 1 else 0)


def layout(held: Holding) -> Blocks:
    """Choose the blocks and their size: near the array's proportions, with room for numbers."""
    spans = [sorted({bounds[axis] for bounds in held.pieces}) for axis in range(len(held.shape))]
    *leading, rows, columns = [*spans, [(0, 1)]] if len(spans) == 1 else spans or [[(0, 1)]] * 2
    flat = len(held.shape) < 2
    proportion = 3.0 if flat else (held.shape[-2] / max(held.shape[-1], 1)) ** 0.5
    label = max(text_width(numbers(ids)) for ids in held.pieces.values()) + 0.12
    return Blocks(
        fronts=tuple(itertools.product(*leading)),
        rows=tuple(rows),
        columns=tuple(columns),
        width=max(0.5 if flat else 1.5, label * len(columns)),
        height=max(min(max(1.5 * proportion, 1.1), 1.6), 0.2 * len(rows)),
        depth=DEPTH if leading else 0.0,
    )


def draw(paper: Paper, held: Holding, blocks: Blocks, left: float, top: float) -> None:
    """Draw the blocks, their upper left corner at (left, top)."""
    for number, front in enumerate(blocks.fronts):
        x = left + number * (blocks.width + blocks.depth + GAP)
        y = top + blocks.above
        if len(blocks.fronts) > 1:
            bounds = ", ".join(f"{start}:{stop}" for start, stop in front)
            paper.text(x + (blocks.width + blocks.depth) / 2, top + LINE / 2, f"[{bounds}]")
        for row, column in itertools.product(blocks.rows, blocks.columns):
            _piece(paper, held, blocks, (front, row, column), (x, y))


def style_of(held: Holding) -> dict[int, Style]:
    """For each device, colour and hatching of the piece that it holds."""
    if len(held.pieces) == 1:
        return {device: (WHOLE, False) for ids in held.pieces.values() for device in ids}
    return {
        device: (COLORS[number % len(COLORS)], number // len(COLORS) % 2 == 1)
        for number, ids in enumerate(held.pieces.values())
        for device in ids
    }


def numbers(ids: Sequence[int]) -> str:
    """Device numbers as briefly as they can be read: "0, 1", "2-5"."""
    if len(ids) > 2 and list(ids) == list(range(ids[0], ids[-1] + 1)):
        return f"{ids[0]}-{ids[-1]}"
    return ", ".join(map(str, ids))


def _piece(paper: Paper, held: Holding, blocks: Blocks, place: tuple, corner: tuple) -> None:
    front, row, column = place
    # Arrays of no and of one axis lack the drawn ones.
    bounds = (*front, row, column)[: len(held.shape)]
    ids = held.pieces[bounds]
    color, hatched = style_of(held)[ids[0]]
    down, across = (
        _scaled(row, blocks.rows, blocks.height),
        _scaled(column, blocks.columns, blocks.width),
    )
    (x0, x1), (y0, y1) = (corner[0] + u for u in across), (corner[1] + u for u in down)
    d = blocks.depth
    if d and row == blocks.rows[0]:
        paper.face([(x0, y0), (x1, y0), (x1 + d, y0 - d), (x0 + d, y0 - d)], color, hatched)
    if d and column == blocks.columns[-1]:
        paper.face([(x1, y0), (x1, y1), (x1 + d, y1 - d), (x1 + d, y0 - d)], color, hatched)
    paper.box((x0, y0), (x1 - x0, y1 - y0), color, hatched)
    paper.label((x0 + x1) / 2, (y0 + y1) / 2, numbers(ids), color, hatched)


def _scaled(span: Span, spans: Sequence[Span], length: float) -> tuple[float, float]:
    size = max(stop for _, stop in spans) or 1
    return span[0] / size * length, span[1] / size * length
