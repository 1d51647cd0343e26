"""Rows and columns, as an HTML table and as monospace text."""

from collections.abc import Iterable, Sequence

from course_utils.display._numbers import format_column, is_numeric
from course_utils.display._publish import publish
from course_utils.display._text import as_html, one_line, pad, width

_ALIGNS = ("left", "right", "center")

# Inline, because GitHub and sanitizers drop <style>; every colour is the theme's own or a
# translucent grey, so that no theme can make it unreadable.
TABLE = (
    "color:inherit;background:transparent;border-collapse:collapse;font-size:1em;"
    "margin:0.4em 0;table-layout:auto"
)
CAPTION = "caption-side:top;text-align:left;color:inherit;font-weight:bold;padding:0 0.75em 0.4em"
ROW = "background:transparent"
CELL = (
    "padding:0.3em 0.75em;color:inherit;text-align:{align};vertical-align:top;line-height:1.35;"
    "overflow-wrap:break-word;border-bottom:1px solid rgba(128,128,128,{line})"
)


def show_table(
    headers: Sequence[str],
    rows: Iterable[Iterable[object]],
    title: str | None = None,
    aligns: Sequence[str | None] | None = None,
) -> None:
    """Show rows of values under headers.

    Args:
        headers: one non-empty name per column.
        rows: sequences with one value per column; `format_value` says how values read. The
            floats of a column share their number of decimals if they are of similar size.
        title: what the table shows, its caption.
        aligns: per column "left", "right", "center" or None (numbers right, text left).

    Raises:
        ValueError: no headers, an empty header, a row or `aligns` of another length than
            `headers`, or an unknown align; the message names which.

    Example:
        show_table(["split", "images"], [["train", 60000], ["test", 10000]], title="Data")
    """
    headers, rows = _checked_headers(headers), _checked_rows(rows, headers)
    columns = list(zip(*rows, strict=True)) or [()] * len(headers)
    aligns = _checked_aligns(aligns, columns)
    texts = [format_column(column) for column in columns]
    cells = list(zip(*texts, strict=True))
    publish(
        _table_text(headers, cells, title, aligns),
        _table_html(headers, cells, title, aligns),
    )


def _checked_headers(headers):
    headers = [] if isinstance(headers, str) else ["" if h is None else str(h) for h in headers]
    if not headers:
        raise ValueError("headers must be a list of at least one column name")
    for index, header in enumerate(headers):
        if not one_line(header):
            raise ValueError(f"header {index} is empty: every column needs a name")
    return headers


def _checked_rows(rows, headers):
    checked = []
    for index, row in enumerate(rows):
        if isinstance(row, str | bytes) or not hasattr(row, "__iter__"):
            raise ValueError(f"row {index} is {row!r}: expected a list of {len(headers)} values")
        row = list(row)
        if len(row) != len(headers):
            raise ValueError(
                f"row {index} has {len(row)} values: expected {len(headers)}, "
                f"one for each of {', '.join(headers)}"
            )
        checked.append(row)
    return checked


def _checked_aligns(aligns, columns):
    aligns = [None] * len(columns) if aligns is None else list(aligns)
    if len(aligns) != len(columns):
        raise ValueError(f"aligns has {len(aligns)} entries: expected {len(columns)}")
    for index, align in enumerate(aligns):
        if align not in (None, *_ALIGNS):
            raise ValueError(
                f"aligns[{index}] is {align!r}: expected one of {', '.join(_ALIGNS)}, or None"
            )
    return [
        align or ("right" if is_numeric(column) else "left")
        for align, column in zip(aligns, columns, strict=True)
    ]


def _table_text(headers, cells, title, aligns):
    lines = [list(map(one_line, line)) for line in (headers, *cells)]
    widths = [max(map(width, column)) for column in zip(*lines, strict=True)]
    lines.insert(1, ["─" * columns for columns in widths])
    text = ["  ".join(map(pad, line, widths, aligns)) for line in lines]
    if not cells:
        text.append(pad("no rows", width(text[0]), "left"))
    return "\n".join(([one_line(title)] if title else []) + text)


def _table_html(headers, cells, title, aligns):
    caption = f'<caption style="{CAPTION}">{as_html(title)}</caption>' if title else ""
    head = "".join(
        f'<th scope="col" align="{align}" style="{CELL.format(align=align, line=0.9)}">'
        f"{as_html(header)}</th>"
        for header, align in zip(headers, aligns, strict=True)
    )
    body = "".join(_row_html(line, aligns) for line in cells)
    if not cells:
        empty = CELL.format(align="left", line=0.3)
        body = (
            f'<tr style="{ROW}"><td colspan="{len(headers)}" align="left" style="{empty}">'
            "<em>no rows</em></td></tr>"
        )
    # As wide as a title of up to 40 bold characters, so that a narrow table doesn't break it.
    least = f";min-width:min(100%,{1.5 + 0.65 * min(40, width(title)):.1f}em)" if title else ""
    return (
        f'<table style="{TABLE}{least}">{caption}<thead><tr style="{ROW}">{head}</tr></thead>'
        f"<tbody>{body}</tbody></table>"
    )


def _row_html(line, aligns):
    cells = "".join(
        f'<td align="{align}" style="{CELL.format(align=align, line=0.3)}">{as_html(cell)}</td>'
        for cell, align in zip(line, aligns, strict=True)
    )
    return f'<tr style="{ROW}">{cells}</tr>'
