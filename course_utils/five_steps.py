"""The five steps of data parallelism, as a figure for any number of devices."""

from course_utils.display import show_figure
from course_utils.paper import COLORS, WHOLE, Paper

STEPS = (
    ("Replicate the parameters", "every device holds all of them"),
    ("Split the batch", "every device gets its own part"),
    ("Forward and backward", "each device on its part, by itself"),
    ("Average the gradients: all-reduce", "every device waits for all the others"),
    ("The same update everywhere", "so the copies stay equal"),
)
LEFT, TOP, ROW = 3.0, 0.5, 0.72  # inches
BOX = (1.4, 0.36)
SPACE = 0.2
MOST = 4  # columns: of more devices, the first ones and the last are drawn


def show_five_steps(devices: int) -> None:
    """Show which device does what in the five steps, from top to bottom.

    Args:
        devices: how many there are; of more than four, the first two and the last are drawn.

    Raises:
        ValueError: fewer than one device.
    """
    if devices < 1:
        raise ValueError(f"show_five_steps draws one device or more, not {devices}.")
    columns = list(range(devices)) if devices <= MOST else [0, 1, None, devices - 1]
    paper = Paper(LEFT + len(columns) * (BOX[0] + SPACE), TOP + len(STEPS) * ROW)
    for number, (title, why) in enumerate(STEPS):
        y = TOP + number * ROW
        text = {"ha": "left"}
        paper.text(0.05, y + 0.09, f"{number + 1}  {title}", fontsize=10, weight="bold", **text)
        paper.text(0.28, y + 0.28, why, **text)
    for column, device in enumerate(columns):
        _column(paper, LEFT + column * (BOX[0] + SPACE), device)
    _together(paper, LEFT, LEFT + len(columns) * (BOX[0] + SPACE) - SPACE)
    show_figure(paper.figure, alt=_in_words(devices))


def _column(paper: Paper, x: float, device: int | None) -> None:
    """The boxes of one device; an ellipsis for those that aren't drawn."""
    middle = x + BOX[0] / 2
    if device is None:
        for y in (0.2, *(TOP + number * ROW + BOX[1] / 2 for number in (0, 1, 2, 4))):
            paper.text(middle, y, "\u2026", fontsize=14)
        return
    paper.text(middle, 0.2, f"device {device}", fontsize=10, weight="bold")
    color = COLORS[device % len(COLORS)]
    boxes = {
        0: ("parameters", WHOLE),
        1: (f"part {device} of the batch", color),
        2: (f"gradient of part {device}", color),
        4: ("new parameters", WHOLE),
    }
    for number, (text, shade) in boxes.items():
        y = TOP + number * ROW
        paper.box((x, y), BOX, shade)
        paper.label(middle, y + BOX[1] / 2, text, shade)
    for number in range(1, len(STEPS)):
        y = TOP + number * ROW
        paper.arrow((middle, y - ROW + BOX[1]), (middle, y))


def _together(paper: Paper, left: float, right: float) -> None:
    """The one box that all devices share."""
    y = TOP + 3 * ROW
    paper.box((left, y), (right - left, BOX[1]), "white")
    middle = (left + right) / 2
    paper.text(
        middle, y + BOX[1] / 2, "their mean, on every device" if right - left > 2 else "itself"
    )


def _in_words(devices: int) -> str:
    steps = "; ".join(f"{i}. {title}: {why}" for i, (title, why) in enumerate(STEPS, start=1))
    return f"The five steps of data parallelism on {devices} device(s), top to bottom. {steps}."
