"""A few figures side by side: their bars, their values, and which is the best."""

import math
from collections.abc import Iterable, Mapping
from numbers import Real

from course_utils.display._numbers import format_column, scalar
from course_utils.display._publish import publish
from course_utils.display._table import CAPTION, CELL, ROW, TABLE
from course_utils.display._text import as_html, one_line, pad, width

_CELLS = 24  # length of the longest bar, in characters
_EIGHTHS = " ▏▎▍▌▋▊▉"
# The blocks and the background have one colour, so that the bar is smooth where styles are
# kept, and is still drawn, by either of them, where some or all are stripped. Width 0 keeps
# the blocks from widening a narrow page; the edge on the left shows the smallest value.
_BAR = (
    "display:block;width:0;min-width:{percent:.1f}%;height:1.1em;line-height:1.1;overflow:hidden;"
    "white-space:nowrap;border-left:2px solid {colour};box-sizing:border-box;color:{colour};"
    "background:{colour}"
)
_TRACK = "background:rgba(128,128,128,0.15);height:1.1em;min-width:4em;margin:0.1em 0"
_COLOUR, _BEST_COLOUR = "#7d8fa3", "#2f81f7"


def show_bars(
    rows: Mapping[str, float] | Iterable[tuple[str, float]],
    title: str,
    unit: str = "",
    lower_is_better: bool = False,
) -> None:
    """Show figures as horizontal bars from zero, the best one marked.

    Args:
        rows: (label, value) pairs, or a dict; a value is a number, or None if not measured.
            NaN, infinite and negative values are shown as what they are, without a bar.
        title: what is compared.
        unit: of all the values, for example "examples/s".
        lower_is_better: True for times and sizes, False for rates and accuracies.

    Raises:
        ValueError: an empty title, a row that is no pair, an empty label, or a value that is
            no number; the message names the row.

    Example:
        show_bars({"eager": 9100.0, "jit": 58200.0}, "Training speed", unit="examples/s")
    """
    if not one_line(title):
        raise ValueError("show_bars needs a title that says what is compared")
    pairs = rows.items() if hasattr(rows, "items") else rows
    pairs = [_checked_pair(index, pair) for index, pair in enumerate(pairs)]
    labels, values = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    shown = [
        text if value is None else one_line(f"{text} {unit}")
        for text, value in zip(format_column(values), values, strict=True)
    ]
    marks = _marks(values, lower_is_better)
    lengths = _lengths(values)
    reading = f"{'lower' if lower_is_better else 'higher'} is better"
    lines = list(zip(labels, lengths, shown, marks, strict=True))
    publish(_bars_text(lines, title, reading), _bars_html(lines, title, reading))


def _checked_pair(index, pair):
    if isinstance(pair, str) or not hasattr(pair, "__len__") or len(pair) != 2:
        raise ValueError(f"row {index} is {pair!r}: expected a pair (label, value)")
    label, value = one_line(pair[0]), scalar(pair[1])
    if not label:
        raise ValueError(f"row {index} has no label")
    if value is not None and (isinstance(value, bool) or not isinstance(value, Real)):
        raise ValueError(f"row {index} ({label}) is {value!r}: expected a number, or None")
    return label, value


def _drawable(value):
    return value is not None and math.isfinite(value) and value >= 0


def _lengths(values):
    """Return each bar's share of the longest, 0 to 1, or None where none can be drawn."""
    longest = max((value for value in values if _drawable(value)), default=0)
    return [value / (longest or 1) if _drawable(value) else None for value in values]


def _marks(values, lower_is_better):
    finite = [value for value in values if value is not None and math.isfinite(value)]
    if len(set(finite)) < 2:
        return [_why_no_bar(value) for value in values]  # nothing to be better than
    best = min(finite) if lower_is_better else max(finite)
    # A fact, no verdict: whether it is better by more than the noise, the lesson has to say.
    mark = "★ lowest" if lower_is_better else "★ highest"
    return [mark if value == best else _why_no_bar(value) for value in values]


def _why_no_bar(value):
    if value is None:
        return "not measured"
    if math.isnan(value):
        return "not a number"
    if math.isinf(value):
        return "infinite"
    return "below zero" if value < 0 else ""


def _blocks(length):
    """Return the bar in block characters; a value above zero shows at least a sliver."""
    eighths = round(length * _CELLS * 8) or int(length > 0)
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()


def _bars_text(lines, title, reading):
    label_columns = max((width(label) for label, *_ in lines), default=0)
    shown_columns = max((width(shown) for _, _, shown, _ in lines), default=0)
    text = [f"{one_line(title)} ({reading})"]
    for label, length, shown, mark in lines:
        bar = pad(_blocks(length or 0), _CELLS, "left")
        number = pad(shown, shown_columns, "right")
        text.append(f"{pad(label, label_columns, 'left')}  {bar}  {number}  {mark}".rstrip())
    return "\n".join(text if lines else [*text, "no rows"])


def _bars_html(lines, title, reading):
    # Wide enough for the longest label in one line, up to 24 characters; the bars take the rest.
    label_em = 0.6 * min(24, max((width(label) for label, *_ in lines), default=0))
    body = "".join(_bar_html(*line, label_em) for line in lines)
    if not lines:
        body = (
            f'<tr style="{ROW}"><td style="{CELL.format(align="left", line=0)}">no rows</td></tr>'
        )
    return (
        f'<table style="{TABLE};width:100%;max-width:56em"><caption style="{CAPTION}">'
        f'{as_html(title)} <span style="font-weight:normal">({reading})</span></caption>'
        f"<tbody>{body}</tbody></table>"
    )


def _bar_html(label, length, shown, mark, label_em):
    left, right = CELL.format(align="left", line=0), CELL.format(align="right", line=0)
    weight = "bold" if mark.startswith("★") else "normal"
    return (
        f'<tr style="{ROW}"><th scope="row" align="left" '
        f'style="{left};font-weight:normal;min-width:{label_em:.1f}em">{as_html(label)}</th>'
        f'<td align="left" style="{left};width:100%">{_track_html(length, weight)}</td>'
        f'<td align="right" style="{right};font-weight:{weight}">{_unbroken(shown)}</td>'
        f'<td align="left" style="{left};font-weight:{weight}">{_unbroken(mark)}</td></tr>'
    )


def _track_html(length, weight):
    if length is None:
        return ""
    colour = _BEST_COLOUR if weight == "bold" else _COLOUR
    bar = _BAR.format(percent=100 * length, colour=colour)
    blocks = _blocks(length)
    drawn = f'<span style="{bar}">{blocks}</span>' if blocks else ""
    return f'<div aria-hidden="true" style="{_TRACK}">{drawn}</div>'


def _unbroken(text):
    # Not `white-space`: a value stays beside its unit where styles are stripped, too.
    return as_html(text).replace(" ", "\u00a0")
