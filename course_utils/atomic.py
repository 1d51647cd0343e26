"""Replace a file in one step."""

import contextlib
import os
from pathlib import Path


def write_atomically(path: Path, text: str) -> None:
    """Replace `path` by `text` in one step: a reader sees the old file or the new one."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        draft.write_text(text, encoding="utf-8", newline="\n")
        draft.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)
        raise
