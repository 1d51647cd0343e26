"""What the first step with a difference has left to look at."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from course_utils.equivalence._change import Change
from course_utils.equivalence._factors import Named, name_factor
from course_utils.equivalence._report import Leaf
from course_utils.equivalence._sizes import Sizes

Places = Mapping[str, Mapping[str, int]]


@dataclass(frozen=True)
class Evidence:
    """All leaves of the first step with a difference, and what is known of the devices.

    `places` says where each device, by its name, lies along each axis of the mesh.
    """

    leaves: Sequence[Leaf]
    changes: Sequence[Change]
    sizes: Sizes
    rtol: float
    places: Places

    def failing(self, *kinds: str) -> list[tuple[Leaf, Change]]:
        """The state's leaves that differ; the metrics' where the state agrees."""
        pairs = zip(self.leaves, self.changes, strict=True)
        differ = [pair for pair in pairs if pair[0].status == "differs" and pair[0].kind in kinds]
        return [pair for pair in differ if not pair[1].metric] or differ

    def metrics(self) -> list[tuple[Leaf, Change]]:
        """The metrics that differ by a numeric error, whether the state agrees or not."""
        pairs = zip(self.leaves, self.changes, strict=True)
        differ = (pair for pair in pairs if pair[0].status == "differs")
        return [pair for pair in differ if pair[0].kind == "error" and pair[1].metric]

    def named(self, factor: float, path: str) -> Named | None:
        return name_factor(factor, path, self.sizes)

    def agree(self, paths: Sequence[str]) -> bool:
        """Whether there are such leaves, and all are equal."""
        return bool(paths) and all(
            leaf.status == "equal" for leaf in self.leaves if leaf.path in paths
        )
