"""Send one bundle to the notebook, or its text to a terminal that may know only ASCII."""

import sys

from course_utils.display._text import width

_ASCII = str.maketrans("✓✗★»⚠─█▉▊▋▌▍▎▏⏎\u2013\u00a0", "+x*>!-######  /- ")


def publish(
    text: str,
    html: str | None = None,
    data: dict[str, object] | None = None,
    metadata: dict[str, dict] | None = None,
) -> None:
    """Publish one display bundle; outside IPython print its text.

    Args:
        text: the plain-text alternative (`text/plain`), complete in itself.
        html: the same as HTML, user text already escaped (see `as_html`).
        data: further representations, a dict of MIME type to JSON-able value or base64 text.
        metadata: output metadata, a dict of MIME type to dict.

    Example:
        publish("loss 0.31", "loss <b>0.31</b>")
    """
    printable = _encodable(text, getattr(sys.stdout, "encoding", None))
    if not _in_ipython():
        print(printable)
        return
    from IPython.display import display

    bundle = {"text/plain": printable, **(data or {})}
    if html is not None:
        bundle["text/html"] = html
    display(bundle, raw=True, metadata=metadata or {})


def _in_ipython() -> bool:
    # A shell can only be running if IPython has been imported: scripts never pay for it.
    ipython = sys.modules.get("IPython")
    return ipython is not None and ipython.get_ipython() is not None


def _encodable(text, encoding):
    """Return `text`, with stand-ins of the same width for what `encoding` cannot express."""
    encoding = encoding or "utf-8"
    if _fits(text, encoding):
        return text
    return "".join(
        char if _fits(char, encoding) else _stand_in(char.translate(_ASCII)) for char in text
    )


def _stand_in(char):
    return char if char.isascii() else "?" * width(char)


def _fits(text, encoding):
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True
