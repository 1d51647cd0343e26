"""What the cells of an executed notebook report beside what a person sees."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

MIME = "application/vnd.jax-course.{}+json"


@dataclass
class Reported:
    """Checkpoints in order, records by name, and facts about the environment."""

    checkpoints: list[dict[str, Any]] = field(default_factory=list)
    results: dict[str, dict[str, Any]] = field(default_factory=dict)
    environment: dict[str, Any] = field(default_factory=dict)

    @property
    def failed(self) -> list[dict[str, Any]]:
        """The checkpoints that did not pass."""
        return [checkpoint for checkpoint in self.checkpoints if not checkpoint["passed"]]


def collect(cells: list[Any]) -> Reported:
    """Gather the reports in the outputs of `cells`; of a name recorded twice, the last."""
    found = Reported()
    for data in _payloads(cells, "checkpoint"):
        found.checkpoints.append(
            {
                "name": str(data["name"]),
                "passed": bool(data["passed"]),
                "detail": str(data.get("detail") or ""),
            }
        )
    for data in _payloads(cells, "record"):
        found.results[str(data["name"])] = {"value": data["value"], "unit": data.get("unit", "")}
    for data in _payloads(cells, "environment"):
        found.environment.update(data)
    return found


def _payloads(cells: list[Any], kind: str) -> Iterator[dict[str, Any]]:
    mime = MIME.format(kind)
    for cell in cells:
        for output in cell.get("outputs", ()):
            if mime in output.get("data", {}):
                yield output["data"][mime]
