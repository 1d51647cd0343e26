"""The timeline of one training step: what was measured to scale, what wasn't as an order only."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from course_utils.display import show_figure
from course_utils.paper import COLORS, INK, Paper
from course_utils.timing import Timing

DRAWN = 4  # devices, at most
LANE, LEFT = 0.45, 1.1  # inches
TOGETHER, *ALONE = COLORS[1], COLORS[0], *reversed(COLORS[2:])


def show_timeline(
    parts: Mapping[str, Timing], whole: Timing, title: str, together: str = "all-reduce"
) -> str:
    """Draw the parts of a step, each timed alone, one after the other, above the whole step.

    A bar is as long as the median over the repeats; its whisker goes from the fastest repeat to the
    slowest. Where the parts are timed on simulated devices, they say nothing about speed: take
    `show_order` there.

    Args:
        parts: the parts in the order in which they run; each a program of its own, so each also
            pays for its own launch.
        whole: the step that they make up.
        title: on which devices and with what that was measured.
        together: the part for which all devices meet; it has the colour that `show_order` gives it.

    Returns:
        One sentence: what the sum of the parts and the whole allow to say.

    Raises:
        ValueError: no parts, or a time in which something was compiled.
    """
    if not parts:
        raise ValueError("show_timeline needs the parts of the step; `parts` is empty.")
    for name, timing in {**parts, "the whole step": whole}.items():
        if timing.compiles:
            raise ValueError(
                f"{name}: {timing.compiles} programs were compiled while it was timed."
            )
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(9, 2.9), layout="constrained")
    figure.set_facecolor("white")
    start = 0.0
    colors = _colors(parts, together)
    for number, (name, timing) in enumerate(parts.items(), start=1):
        height = 1.12 - 0.12 * ((number - 1) % 3)  # or whiskers of short parts would overlap
        _bar(axes, (1, height), start, timing, colors[name], f"{number}  {name}: {_range(timing)}")
        middle, top = start + timing.ms_per_step / 2, 1.34
        axes.text(middle, top, str(number), ha="center", va="bottom", fontsize=10)
        start += timing.ms_per_step
    _bar(axes, (0, 0), 0.0, whole, "#e3e3e3", f"the whole step: {_range(whole)}")
    axes.set_yticks([1, 0], ["its parts,\neach timed alone", "the whole step"])
    axes.set(ylim=(-0.5, 1.75), xlabel="ms (whiskers: fastest to slowest repeat)", title=title)
    axes.set_xlim(left=0)
    axes.grid(axis="x", alpha=0.3)
    axes.legend(loc="upper left", bbox_to_anchor=(0, -0.28), ncols=2, frameon=False)
    found = reading(parts, whole)
    text = "; ".join(f"{name} {_range(timing)}" for name, timing in parts.items())
    show_figure(figure, alt=f"{title}. Parts: {text}. The whole step: {_range(whole)}. {found}")
    return found


def reading(parts: Mapping[str, Timing], whole: Timing) -> str:
    """What the times allow to say of the sum of the parts against the whole step."""
    total = sum(timing.ms_per_step for timing in parts.values())
    slack = sum(max(t.samples_ms) - min(t.samples_ms) for t in (*parts.values(), whole))
    both = f"The parts add up to {total:.3g} ms, the whole step takes {whole.ms_per_step:.3g} ms"
    difference = total - whole.ms_per_step
    if abs(difference) <= slack:
        return f"{both}: no difference beyond the spread of {slack:.2g} ms."
    if difference > 0:
        return (
            f"{both}: {difference:.2g} ms less. In one program parts overlap or merge, "
            "and are launched once."
        )
    return (
        f"{both}: {-difference:.2g} ms are in none of them, such as waiting for one another, "
        "or work that the compiler arranges otherwise in the larger program."
    )


def show_order(devices: int, alone: Sequence[str], together: str, after: Sequence[str]) -> None:
    """Draw in which order the devices do what, and where they have to wait; no times.

    Args:
        devices: how many; of more than four, the first two and the last are drawn.
        alone: what each device does by itself first.
        together: what all do together, for which each waits for the last one.
        after: what each does by itself afterwards.

    Raises:
        ValueError: fewer than two devices: nobody waits for anybody.
    """
    if devices < 2:
        raise ValueError(f"show_order draws two devices or more, not {devices}.")
    lanes = list(range(devices)) if devices <= DRAWN else [0, 1, None, devices - 1]
    widths = [2.4] * len(alone) + [1.9] + [1.5] * len(after)
    names = [*alone, together, *after]
    colors = _colors(names, together)
    paper = Paper(LEFT + sum(widths) + 0.2, 0.75 + LANE * len(lanes))
    for lane, device in enumerate(lanes):
        y = 0.3 + lane * LANE
        label = "\u2026" if device is None else f"device {device}"
        paper.text(LEFT - 0.12, y + LANE / 2, label, ha="right")
        for number, name in enumerate(names):
            x = LEFT + sum(widths[:number])
            if number != len(alone) and device is not None:
                paper.box((x, y + 0.05), (widths[number], LANE - 0.1), colors[name])
                paper.label(x + widths[number] / 2, y + LANE / 2, name, colors[name])
    _shared(paper, LEFT + sum(widths[: len(alone)]), widths[len(alone)], len(lanes), together)
    end = 0.3 + LANE * len(lanes)
    paper.arrow((LEFT, end + 0.1), (LEFT + sum(widths), end + 0.1))
    words = "one training step: the order only; widths are no times"
    paper.text(LEFT + sum(widths) / 2, end + 0.27, words)
    order = ", then ".join([*alone, f"{together} (all devices together)", *after])
    show_figure(paper.figure, alt=f"On each of {devices} devices: {order}. An order, no times.")


def _shared(paper: Paper, x: float, width: float, lanes: int, name: str) -> None:
    """The one box across all lanes, which begins when the last device has come."""
    paper.box((x + 0.05, 0.3), (width - 0.1, LANE * lanes), TOGETHER)
    paper.label(x + width / 2, 0.3 + LANE * lanes / 2, name, TOGETHER)
    paper.text(x, 0.13, "each waits for the last one", ha="center")


def _colors(names: Iterable[str], together: str) -> dict[str, str]:
    """A colour for each part, the same in both pictures."""
    found = dict(zip((name for name in names if name != together), ALONE, strict=False))
    return found | {together: TOGETHER}


def _bar(
    axes: Any, y: tuple[float, float], start: float, timing: Timing, color: str, label: str
) -> None:
    """A bar and its whisker, at their heights."""
    row, whisker = y
    median = timing.ms_per_step
    low, high = min(timing.samples_ms), max(timing.samples_ms)
    axes.barh(row, median, left=start, height=0.55, color=color, edgecolor=INK, label=label)
    error = [[max(median - low, 0)], [max(high - median, 0)]]
    axes.errorbar(start + median, whisker, xerr=error, color=INK, capsize=4, linewidth=1.2)


def _range(timing: Timing) -> str:
    low, high = min(timing.samples_ms), max(timing.samples_ms)
    return f"{timing.ms_per_step:.3g} ms ({low:.3g} to {high:.3g})"
