"""Numbers to tables, bars, notes and figures that everybody can read.

Each `show_*` publishes one display bundle: HTML for notebooks, and plain text for terminals,
logs and screen readers. The HTML inherits the theme's colours, carries no script and no
style sheet, and still says everything where a viewer strips its inline styles. All user text
is escaped. In a plain Python script the text is printed.

`publish`, `as_html`, `callout`, `format_value` and `scalar` are what the other instruments
build their own displays from.
"""

from course_utils.display._bars import show_bars
from course_utils.display._figure import show_figure
from course_utils.display._note import callout, show_note
from course_utils.display._numbers import format_value, scalar
from course_utils.display._publish import publish
from course_utils.display._table import show_table
from course_utils.display._text import as_html, one_line

__all__ = [
    "as_html",
    "callout",
    "format_value",
    "one_line",
    "publish",
    "scalar",
    "show_bars",
    "show_figure",
    "show_note",
    "show_table",
]
