"""What the cells of an executed notebook report beside what a person sees."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

MIME = "application/vnd.jax-course.{}+json"


@dataclass
class Reported:
    """Checkpoints in order, records and exercises by name, and facts about the environment."""

    checkpoints: list[dict[str, Any]] = field(default_factory=list)
    results: dict[str, dict[str, Any]] = field(default_factory=dict)
    environment: dict[str, Any] = field(default_factory=dict)
    exercises: dict[str, str] = field(default_factory=dict)
    said: dict[str, str] = field(default_factory=dict)  # of each exercise, to the learner

    @property
    def failed(self) -> list[dict[str, Any]]:
        """The checkpoints that did not pass."""
        return [checkpoint for checkpoint in self.checkpoints if not checkpoint["passed"]]


def collect(cells: list[Any]) -> Reported:
    """Gather the reports in the outputs of `cells`; of a name given twice, the last."""
    found = Reported()
    for data in _payloads(cells, "checkpoint"):
        found.checkpoints.append(
            {
                "name": str(data.get("name", "")),
                "passed": data.get("passed") is True,
                "detail": str(data.get("detail") or ""),
            }
        )
    for data in _payloads(cells, "record"):
        entry = {"value": data.get("value"), "unit": str(data.get("unit") or "")}
        found.results[str(data.get("name", ""))] = entry
    for data in _payloads(cells, "environment"):
        found.environment.update(data)
    for data in _payloads(cells, "exercise"):
        id = str(data.get("id", ""))
        found.exercises[id] = str(data.get("status", ""))
        found.said[id] = str(data.get("message") or "")
    return found


def _payloads(cells: list[Any], kind: str) -> Iterator[dict[str, Any]]:
    mime = MIME.format(kind)
    for cell in cells:
        for output in cell.get("outputs", ()):
            data = output.get("data", {}).get(mime)
            if isinstance(data, dict):
                yield strict(data)


def strict(value: Any) -> Any:
    """`value` as strict JSON can hold it: a loss that is NaN becomes the text "nan"."""
    if isinstance(value, dict):
        return {str(key): strict(item) for key, item in value.items()}
    if isinstance(value, list):
        return [strict(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    return value
