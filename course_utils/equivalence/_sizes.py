"""The numbers of a comparison: devices, shards, micro-batches, examples."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from course_utils.equivalence._options import Options
from course_utils.equivalence._padding import mask_of, real_count
from course_utils.equivalence._shards import rows_of, shard_count


@dataclass(frozen=True)
class Sizes:
    """What a factor between two updates may be made of.

    Attributes:
        axes: sizes of the mesh axes by name, the likeliest first.
        devices: how many the parallel step used.
        micro_batches: how many there are in a batch, 1 if none is known of.
        shards: over how many a batch's examples lie.
        rows: of a batch, its padding included.
        real: how many of them are examples, as a mask tells.
    """

    axes: Mapping[str, int] = field(default_factory=dict)
    devices: int = 1
    micro_batches: int = 1
    shards: int = 1
    rows: int = 0
    real: int = 0

    def of_devices(self) -> dict[int, str]:
        """Sizes that stem from the devices, in words."""
        sizes: dict[int, str] = {}
        for axis, size in self.axes.items():
            if size > 1:
                said = sizes.get(size)
                sizes[size] = f"{said} or {axis!r}" if said else f"the size of mesh axis {axis!r}"
        if self.devices > 1 and self.devices not in sizes:
            sizes[self.devices] = "the number of devices"
        if self.micro_batches in sizes:
            sizes[self.micro_batches] += ", or the number of micro-batches"
        return sizes


def measure(batch: Any, whole: Any, axes: dict[str, int], devices: int, options: Options) -> Sizes:
    """The sizes of a comparison: `batch` as the parallel step takes it, `whole` with axes merged."""
    stacked = options.stacked
    rows = rows_of(whole)
    return Sizes(
        axes=axes,
        devices=devices,
        micro_batches=rows_of(batch, int(stacked)) if options.micro_batches else 1,
        shards=devices if stacked else shard_count(batch, axes, options.leading),
        rows=rows,
        real=real_count(whole, mask_of(whole, rows), rows),
    )
