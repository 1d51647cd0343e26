"""Callouts: a word, a sign and a coloured edge say what kind of message it is."""

from course_utils.display._publish import publish
from course_utils.display._text import as_html, clean

_TONES = {"info": "47,129,247", "good": "46,160,67", "warn": "210,140,20", "bad": "229,62,62"}
_KINDS = {"info": ("»", "Note"), "good": ("✓", "Good"), "warn": ("⚠", "Warning")}


def show_note(message: str, kind: str = "info") -> None:
    """Show a message that must not be overlooked.

    Args:
        message: plain text; line breaks are kept.
        kind: "info", "good" or "warn".

    Raises:
        ValueError: an empty message or an unknown kind.

    Example:
        show_note("These devices are simulated: speed here says nothing about GPUs.", "warn")
    """
    if kind not in _KINDS:
        raise ValueError(f"kind is {kind!r}: expected one of {', '.join(_KINDS)}")
    if not clean(message).strip():
        raise ValueError("a note needs a message")
    sign, word = _KINDS[kind]
    publish(*callout(sign, word, message, kind))


def callout(sign: str, word: str, message: str, tone: str, detail: str = "") -> tuple[str, str]:
    """Return (text, html) of a callout: sign and word, then the message, then the detail.

    Args:
        sign: one character that stands for the kind.
        word: the kind in words, so that neither colour nor sign is needed.
        message: plain text.
        tone: colour of the edge: "info", "good", "warn" or "bad".
        detail: plain text under the message.

    Example:
        publish(*callout("✓", "passed", "loss falls", "good"))
    """
    lines = [f"{sign} {word}: {clean(message).strip()}"]
    if clean(detail).strip():
        lines.append(clean(detail).strip())
    text = "\n".join(lines).replace("\n", "\n  ")
    style = (
        f"color:inherit;background:rgba({_TONES[tone]},0.1);padding:0.4em 0.8em;margin:0.3em 0;"
        f"border-left:4px solid rgb({_TONES[tone]});line-height:1.4;overflow-wrap:break-word"
    )
    below = "".join(f"<br>{as_html(line)}" for line in lines[1:])
    html = (
        f'<div style="{style}"><strong>{as_html(sign)} {as_html(word)}:</strong> '
        f"<bdi>{as_html(message)}</bdi>{below}</div>"
    )
    return text, html
