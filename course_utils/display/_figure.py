"""A matplotlib figure as an image that also says in words what it shows."""

import base64
import html
import io
import sys
from typing import TYPE_CHECKING

from course_utils.display._publish import publish
from course_utils.display._text import one_line

if TYPE_CHECKING:  # scripts without a figure need no matplotlib
    from matplotlib.figure import Figure


def show_figure(figure: "Figure", alt: str) -> None:
    """Show a matplotlib figure as PNG, say in words what it shows, and close it.

    The background is opaque, so axis labels stay legible in a dark theme. `alt` goes into the
    plain text, the output metadata and the alt attribute of an `<img>`: neither JupyterLab
    nor nbconvert's lab template takes it from the metadata of a bare PNG.

    Args:
        figure: the matplotlib.figure.Figure; pyplot forgets it, so it isn't shown twice.
        alt: what one would tell a person who can't see the figure.

    Raises:
        ValueError: an empty alt.
        TypeError: no Figure (for example its Axes).

    Example:
        show_figure(figure, alt="Training loss falls from 2.3 to 0.4 within 400 steps")
    """
    if not isinstance(alt, str) or not one_line(alt):
        raise ValueError("alt must say in words what the figure shows")
    if not hasattr(figure, "savefig"):
        raise TypeError(f"expected a matplotlib Figure, got {type(figure).__name__}: ax.figure?")
    alt = one_line(alt)
    pixels, png = _png(figure)
    _close(figure)
    encoded = base64.b64encode(png).decode()
    publish(
        f"Figure: {alt}",
        f'<img src="data:image/png;base64,{encoded}" alt="{html.escape(alt)}" width="{pixels}">',
        data={"image/png": encoded},
        metadata={"image/png": {"alt": alt, "width": pixels}},
    )


def _png(figure):
    """Return the figure's width in CSS pixels and its PNG with twice as many, for sharp text."""
    face = figure.get_facecolor()
    file = io.BytesIO()
    figure.savefig(
        file,
        format="png",
        dpi=2 * figure.dpi,
        bbox_inches="tight",
        transparent=False,
        facecolor=face if face[3] == 1 else "white",
    )
    png = file.getvalue()
    # Bytes 16 to 20 of a PNG are its width (big-endian), the first field of its IHDR chunk.
    return int.from_bytes(png[16:20], "big") // 2, png


def _close(figure):
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None:
        pyplot.close(figure)
