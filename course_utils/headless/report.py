"""index.html of a run: one page that stands alone."""

from pathlib import Path
from typing import Any


def render(results: dict[str, Any], folder: Path) -> str:
    """The page."""
    return "<!DOCTYPE html><title>Course run</title>"
