"""What the comparison found: a row for each leaf, the worst one, and what it suggests."""

import math
from dataclasses import dataclass

HEADERS = ("Leaf", "Relative error", "Factor", "Verdict")

_MOST_LINES = 24


@dataclass(frozen=True)
class Leaf:
    """One leaf of the state or of the metrics, after the last step that was compared.

    Attributes:
        path: where it is, such as "state[0]['W']" or "metrics['loss']".
        relative_error: norm of (parallel - reference), as a fraction of the way that the
            reference's leaf has moved since the first step; of its value for a metric. None
            where there is no number to give, such as another shape.
        factor: how many times the reference's update (a metric: value) the parallel one is, by
            projection; None where the reference didn't move.
        verdict: in words.
        status: "equal", "unproved" (nothing speaks against it, and nothing for it) or "differs".
        kind: the sort of difference: "dtype", "shape", "replicas", "non-finite", "exact",
            "error"; "" where there is none.
    """

    path: str
    relative_error: float | None
    factor: float | None
    verdict: str
    status: str = "differs"
    kind: str = ""

    @property
    def row(self) -> tuple[str, float | None, float | None, str]:
        return self.path, self.relative_error, self.factor, self.verdict

    @property
    def badness(self) -> tuple[bool, float]:
        error = self.relative_error
        size = math.inf if error is None or math.isnan(error) else error
        return self.status == "differs", size if self.status == "differs" else error or 0.0


@dataclass(frozen=True)
class Report:
    """What `assert_equal_to_one_device` compared.

    Attributes:
        leaves: state first, then metrics.
        steps: steps that were run and compared.
        devices: how many devices the parallel step used.
        suggestion: the likely cause, where something differs, or why nothing is proved; else "".
        notes: what else to know, such as leaves that prove nothing.
    """

    leaves: tuple[Leaf, ...]
    steps: int
    devices: int
    suggestion: str = ""
    notes: tuple[str, ...] = ()

    @property
    def rows(self) -> list[tuple[str, float | None, float | None, str]]:
        """One tuple for each leaf, under `HEADERS`."""
        return [leaf.row for leaf in self.leaves]

    @property
    def worst(self) -> Leaf | None:
        """The leaf that differs most; where none differs, the one with the largest error."""
        return max(self.leaves, key=lambda leaf: leaf.badness, default=None)

    @property
    def ok(self) -> bool:
        return not any(leaf.status == "differs" for leaf in self.leaves)

    def __str__(self) -> str:
        differ = sum(leaf.status == "differs" for leaf in self.leaves)
        found = f"{differ} of {len(self.leaves)} leaves differ" if differ else "equal"
        steps = f"step {self.steps}" if differ else f"{self.steps} step(s)"
        head = f"{found} after {steps} on {self.devices} device(s), against one device"
        return "\n".join([head, *self._table(), *self._remarks()])

    def _table(self) -> list[str]:
        # What differs comes first, and the equal ones are cut: a model has hundreds of leaves.
        order = {"differs": 0, "unproved": 1, "equal": 2}
        leaves = sorted(self.leaves, key=lambda leaf: order[leaf.status])
        shown = [[_text(value) for value in leaf.row] for leaf in leaves[:_MOST_LINES]]
        widths = [max(map(len, column)) for column in zip(HEADERS, *shown, strict=True)]
        lines = [
            "  " + "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True))
            for row in [HEADERS, *shown]
        ]
        left = len(leaves) - len(shown)
        return [line.rstrip() for line in lines] + ([f"  ... and {left} more"] if left else [])

    def _remarks(self) -> list[str]:
        label = "But nothing is proved" if self.ok else "Likely cause"
        likely = [f"{label}: {self.suggestion}"] if self.suggestion else []
        return likely + [f"Note: {note}" for note in self.notes]


class NotEqualToOneDevice(AssertionError):
    """The parallel step doesn't do what one device does; `report` says where and by how much."""

    def __init__(self, report: Report):
        super().__init__(str(report))
        self.report = report


class NothingProved(NotEqualToOneDevice):
    """Both sides agree, but on nothing that counts, such as a step that trains nothing."""


def _text(value: str | float | None) -> str:
    return "-" if value is None else value if isinstance(value, str) else f"{value:.4g}"
