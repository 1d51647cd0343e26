"""A sheet measured in inches, y downwards, on which boxes and texts have known sizes."""

import functools
from collections.abc import Sequence
from typing import Any

SIZE = 9  # points: the smallest text in a picture
INK = "#222222"
WHOLE = "#e3e3e3"
# Okabe and Ito's colours, with white for black, in an order in which neighbours look different to
# everybody, whichever kind of cone they lack.
COLORS = (
    "#e69f00",
    "#56b4e9",
    "#d55e00",
    "#0072b2",
    "#ffffff",
    "#cc79a7",
    "#f0e442",
    "#009e73",
)
WHITE_ON = "#0072b2"  # the one colour on which black is hard to read


@functools.cache
def text_width(text: str, bold: bool = False, size: float = SIZE) -> float:
    """Inches that the longest line of a text takes."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextPath

    font = FontProperties(weight="bold" if bold else "normal")
    lines = [line for line in text.splitlines() if line.strip()]
    ends = [TextPath((0, 0), line, size=size, prop=font).get_extents().x1 for line in lines]
    return max(ends, default=0.0) / 72


class Paper:
    """The axes of a figure that is `width` x `height` inches."""

    def __init__(self, width: float, height: float) -> None:
        from matplotlib import pyplot as plt

        self.figure = plt.figure(figsize=(width, height), facecolor="white")
        self.axes: Any = self.figure.add_axes((0, 0, 1, 1))
        self.axes.set(xlim=(0, width), ylim=(height, 0))
        self.axes.axis("off")

    def face(
        self, corners: Sequence[tuple[float, float]], color: str, hatched: bool = False
    ) -> None:
        """A filled polygon with a dark edge."""
        from matplotlib.patches import Polygon

        style = {"hatch": "////"} if hatched else {}
        patch = Polygon(corners, facecolor=color, edgecolor=INK, linewidth=0.8, **style)
        patch.set_hatch_linewidth(0.4)
        self.axes.add_patch(patch)

    def box(
        self,
        corner: tuple[float, float],
        size: tuple[float, float],
        color: str,
        hatched: bool = False,
    ) -> None:
        """A filled rectangle with a dark edge; its corner is the upper left one."""
        (x, y), (w, h) = corner, size
        self.face([(x, y), (x + w, y), (x + w, y + h), (x, y + h)], color, hatched)

    def text(self, x: float, y: float, text: str, **style: Any) -> None:
        """Text centred on (x, y) unless `style` says otherwise."""
        self.axes.text(
            x, y, text, **{"ha": "center", "va": "center", "fontsize": SIZE, "color": INK, **style}
        )

    def arrow(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        """A dark arrow from start to end."""
        style = {"arrowstyle": "-|>", "color": INK, "shrinkA": 0, "shrinkB": 0}
        self.axes.annotate("", xy=end, xytext=start, arrowprops=style)

    def label(self, x: float, y: float, text: str, color: str, hatched: bool = False) -> None:
        """Text on a piece of this colour, legible also where it is hatched."""
        ink = "white" if color == WHITE_ON else "black"
        under = {"facecolor": color, "edgecolor": "none", "pad": 1} if hatched else None
        self.text(x, y, text, color=ink, bbox=under)
