"""Cuts what a cell puts out where no page could show it, and remembers that it did."""

from typing import Any

KEPT_BYTES = 5_000_000  # per cell; a page with more than that makes a browser stall
CUT = "\n[the rest of this cell's output was not kept]\n"


class Meter:
    """Counts the output of each cell; what goes beyond the limit is dropped, errors never.

    Attributes:
        where: label of the first cell that put out too much, None if none did.
        total: how many bytes that cell put out.
    """

    def __init__(self, limit: int = KEPT_BYTES) -> None:
        self.limit = limit
        self.where: str | None = None
        self.total = 0
        self._seen: dict[int, int] = {}

    def admits(self, message: dict[str, Any], cell_index: int, label: str | None) -> bool:
        """Whether to keep an output message; text that goes beyond the limit is cut in place."""
        if message["msg_type"] == "error":
            return True
        before = self._seen.get(cell_index, 0)
        size = _size(message)
        self._seen[cell_index] = before + size
        if before + size <= self.limit:
            return True
        self.where = self.where or label
        if self.where == label:
            self.total = before + size
        return before <= self.limit and _cut(message, self.limit - before)


def _size(message: dict[str, Any]) -> int:
    content = message["content"]
    if message["msg_type"] == "stream":
        return len(content["text"])
    return sum(len(str(data)) for data in content.get("data", {}).values())


def _cut(message: dict[str, Any], room: int) -> bool:
    """Whether the message is text, which then keeps what there is room for."""
    if message["msg_type"] != "stream":
        return False
    message["content"]["text"] = message["content"]["text"][:room] + CUT
    return True
