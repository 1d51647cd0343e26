"""Pictures of a data-parallel step: what comes before the reduction, and who holds which rows."""

import numpy as np

from course_utils.display import show_figure
from course_utils.paper import COLORS, WHOLE, Paper

STEPS = (
    ("Sum", "over its own rows: sums add up"),
    ("Reduce", "the one exchange, all sums together"),
    ("Divide", "by the examples of all devices"),
    ("Bend", "whatever isn't a sum sees the total"),
)
TITLES, TOP, ROW = 2.9, 0.5, 0.72  # inches
BOX, SPACE = (1.75, 0.42), 0.2
STRIP, LABELS = 4.6, 1.0  # the longest strip of rows, and the names to the left of it
MOST = 3  # devices in the picture of the order: of more, the first ones and the last are drawn


def show_reduction_order(devices: int) -> None:
    """Show which parts of a step come before the reduction and which after, top to bottom.

    Args:
        devices: how many there are; of more than three, the first two and the last are drawn.

    Raises:
        ValueError: fewer than one device.
    """
    if devices < 1:
        raise ValueError(f"show_reduction_order draws one device or more, not {devices}.")
    columns = list(range(devices)) if devices <= MOST else [0, 1, None, devices - 1]
    right = TITLES + len(columns) * (BOX[0] + SPACE) - SPACE
    paper = Paper(right + 0.1, TOP + len(STEPS) * ROW)
    for number, (title, why) in enumerate(STEPS):
        y = TOP + number * ROW
        paper.text(0.05, y + 0.1, f"{number + 1}  {title}", fontsize=10, weight="bold", ha="left")
        paper.text(0.28, y + 0.3, why, ha="left")
    for place, device in enumerate(columns):
        _column(paper, TITLES + place * (BOX[0] + SPACE), device)
    y = TOP + ROW
    paper.box((TITLES, y), (right - TITLES, BOX[1]), "white")
    paper.text((TITLES + right) / 2, y + BOX[1] / 2, "psum: the total,\non every device")
    show_figure(paper.figure, alt=_order_in_words(devices))


def show_rows(mask: np.ndarray, devices: int, title: str) -> None:
    """Show how many real examples and how much padding each device holds of a padded batch.

    Args:
        mask: shape (examples,), 1 for a real example, 0 for padding; split evenly, in order.
        devices: how many; they must divide the examples.
        title: which batch this is.

    Raises:
        ValueError: the examples don't divide by the devices.
    """
    if devices < 1 or len(mask) % devices:
        raise ValueError(f"{len(mask)} examples can't be split over {devices} devices.")
    shares = np.asarray(mask).reshape(devices, -1)
    real, rows = shares.sum(axis=1).astype(int), shares.shape[1]
    paper = Paper(LABELS + STRIP + 1.7, 0.45 + 0.34 * devices)
    paper.text(0.05, 0.18, title, fontsize=10, weight="bold", ha="left")
    for device, count in enumerate(real):
        y, color = 0.4 + 0.34 * device, COLORS[device % len(COLORS)]
        paper.text(LABELS - 0.1, y + 0.13, f"device {device}", ha="right")
        width = STRIP * count / rows
        if count < rows:
            paper.box((LABELS + width, y), (STRIP - width, 0.26), "white", hatched=True)
        if count:
            paper.box((LABELS, y), (width, 0.26), color)
        words = f"{count} real, {rows - count} padding"
        paper.text(LABELS + STRIP + 0.1, y + 0.13, words, ha="left")
    held = "; ".join(f"device {i}: {c} real, {rows - c} padding" for i, c in enumerate(real))
    show_figure(paper.figure, alt=f"{title}. {held}.")


def _column(paper: Paper, x: float, device: int | None) -> None:
    """The boxes of one device; an ellipsis for those that aren't drawn."""
    middle = x + BOX[0] / 2
    if device is None:
        for y in (0.2, *(TOP + row * ROW + BOX[1] / 2 for row in (0, 2, 3))):
            paper.text(middle, y, "\u2026", fontsize=14)
        return
    paper.text(middle, 0.2, f"device {device}", fontsize=10, weight="bold")
    boxes = {
        0: ("losses, gradients,\ncounts of its rows", COLORS[device % len(COLORS)]),
        2: ("mean loss,\nmean gradient", WHOLE),
        3: ("norm, clip, ratios,\noptimizer", WHOLE),
    }
    for row, (text, shade) in boxes.items():
        y = TOP + row * ROW
        paper.box((x, y), BOX, shade)
        paper.label(middle, y + BOX[1] / 2, text, shade)
    for row in range(1, len(STEPS)):
        y = TOP + row * ROW
        paper.arrow((middle, y - ROW + BOX[1]), (middle, y))


def _order_in_words(devices: int) -> str:
    steps = "; ".join(f"{i}. {title}: {why}" for i, (title, why) in enumerate(STEPS, start=1))
    return (
        f"The order of a data-parallel step on {devices} device(s). {steps}. The first is each "
        "device's own, the reduction is one for all, and what follows is the same on every device."
    )
