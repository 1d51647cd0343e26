"""What the first step with a difference has left to look at."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from course_utils.equivalence._change import Change
from course_utils.equivalence._factors import Named, name_factor
from course_utils.equivalence._report import Leaf


@dataclass(frozen=True)
class Evidence:
    """All leaves of the first step with a difference, and what is known of the devices."""

    leaves: Sequence[Leaf]
    changes: Sequence[Change]
    axes: Mapping[str, int]
    devices: int
    rtol: float

    def failing(self, *kinds: str) -> list[tuple[Leaf, Change]]:
        """The state's leaves that differ; the metrics' where the state agrees."""
        pairs = zip(self.leaves, self.changes, strict=True)
        differ = [pair for pair in pairs if pair[0].status == "differs" and pair[0].kind in kinds]
        return [pair for pair in differ if not pair[1].metric] or differ

    def named(self, factor: float, path: str) -> Named | None:
        return name_factor(factor, path, self.axes, self.devices)
