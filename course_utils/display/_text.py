"""Make any text safe to show: no control characters, known width, escaped for HTML."""

import html
import re
import unicodedata

# CSI (colours, cursor), OSC (titles, links) and the two-character escapes.
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -/]*[0-~])")
_LINE_BREAK = re.compile(r"\r\n|[\n\r\v\f\x85\u2028\u2029]")
# Directional overrides and isolates would reorder the text around them, too.
_DIRECTION = re.compile("[\u202a-\u202e\u2066-\u2069]")


def clean(text: object) -> str:
    r"""Return `text` with only "\n" as line break and no other control character.

    ANSI sequences and directional overrides are removed, tabs become spaces, and whatever
    else cannot be shown (NUL, lone surrogates) becomes U+FFFD.

    Example:
        clean("\x1b[31mred\x1b[0m\r\n")  # 'red\n'
    """
    text = _LINE_BREAK.sub("\n", _DIRECTION.sub("", _ANSI.sub("", str(text))))
    return "".join(map(_visible, text.replace("\t", "    ")))


def _visible(char):
    if char != "\n" and unicodedata.category(char) in ("Cc", "Cs"):
        return "\ufffd"
    return char


def one_line(text: object) -> str:
    r"""Return `text` cleaned, each line break shown as "⏎": one row of a table stays one line.

    Example:
        one_line("first\nsecond")  # 'first ⏎ second'
    """
    return clean(text).strip().replace("\n", " ⏎ ")


def as_html(text: object) -> str:
    r"""Return `text` cleaned and escaped for HTML content, line breaks as `<br>`.

    Example:
        as_html("a < b\nc")  # 'a &lt; b<br>c'
    """
    return html.escape(clean(text).strip()).replace("\n", "<br>")


def width(text: str) -> int:
    """Return how many terminal columns `text` takes: wide and combining characters count so."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len  # here, not above: a notebook without such text skips it

    return cell_len(text)


def pad(text: str, columns: int, align: str) -> str:
    """Return `text` filled with spaces to `columns`: align is left, right or center."""
    missing = columns - width(text)
    before = {"left": 0, "right": missing, "center": missing // 2}[align]
    return " " * before + text + " " * (missing - before)
