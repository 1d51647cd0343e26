"""How many devices take part in one collective together.

The forms are those that XLA prints (xla/hlo/ir/replica_group.cc and mesh_and_axis.cc):
lists `{{0,1},{2,3}}`, or `{}` for everyone; a reshaped iota `[2,4]<=[4,2]T(1,0)`, two groups of
four; axes of a mesh `mesh['a'=2,'b'=4] {'b'}`, where `'b':(2)2` is a part of an axis; and, for a
permute, pairs of source and target.
"""

import math
import re

from course_utils.hlo.module import Instruction, Module

_LISTED = re.compile(r"\{\{\d+(,\d+)*\}(,\{\d+(,\d+)*\})*\}")
_IOTA = re.compile(r"\[(?P<groups>\d+),(?P<size>\d+)\]<=\[(?P<devices>\d+(,\d+)*)\](T\([\d,]+\))?")
_MESH = re.compile(r"mesh\[(?P<sizes>[^\]]+)\](, device_ids=\(.*\))? \{(?P<axes>[^}]*)\}")
_MESH_AXIS = re.compile(r"(?P<name>[^,:=]+)=(?P<size>\d+)")
_GROUP_AXIS = re.compile(r"(?P<name>[^,:=]+)(:\(\d+\)(?P<part>\d+))?")
_ONE_DEVICE = re.compile(r"maximal_mesh\[device_id=\d+\] \{\}")
_PAIRS = re.compile(r"\{(\{\d+,\d+\}(,\{\d+,\d+\})*)?\}")


def group_size(kind: str, instruction: Instruction, module: Module) -> int:
    """Devices in the largest group of a collective; 1 where every device is alone.

    Raises:
        ValueError: the groups are missing or in no known form.
    """
    if kind == "collective-permute":
        return _largest_exchange(instruction)
    value = instruction.attributes.get("replica_groups", "")
    if "device_ids" in instruction.attributes:
        value += f", device_ids={instruction.attributes['device_ids']}"
    everyone, devices_per_id = _who(kind, instruction, module)
    if value != "{}":
        return _ids_per_group(value, instruction) * devices_per_id
    if module.replicas is None and module.partitions is None:
        raise instruction.error(
            "replica_groups={} means every device, but the text's first line has neither "
            "replica_count nor num_partitions to say how many there are."
        )
    return everyone


def _who(kind: str, instruction: Instruction, module: Module) -> tuple[int, int]:
    """Devices of a group without a list, and devices that an id in a list stands for.

    The modes are those of xla/hlo/ir/collective_op_group_mode.h.
    """
    replicas, partitions = module.replicas or 1, module.partitions or 1
    if instruction.attributes.get("use_global_device_ids") == "true":
        return replicas * partitions, 1
    if "channel_id" not in instruction.attributes:
        return replicas, 1
    if kind in ("all-gather", "all-reduce", "reduce-scatter"):
        return replicas * partitions, partitions
    return partitions, 1


def _ids_per_group(value: str, instruction: Instruction) -> int:
    if _LISTED.fullmatch(value):
        return max(group.count(",") + 1 for group in re.findall(r"\{([\d,]+)\}", value))
    if iota := _IOTA.fullmatch(value):
        devices = math.prod(int(size) for size in iota["devices"].split(","))
        if int(iota["groups"]) * int(iota["size"]) == devices:
            return int(iota["size"])
    if mesh := _MESH.fullmatch(value):
        sizes = {axis["name"]: int(axis["size"]) for axis in _MESH_AXIS.finditer(mesh["sizes"])}
        axes = list(_GROUP_AXIS.finditer(mesh["axes"]))
        if all(axis["name"] in sizes for axis in axes):
            return math.prod(int(axis["part"] or sizes[axis["name"]]) for axis in axes)
    if _ONE_DEVICE.fullmatch(value):
        return 1
    raise instruction.error(
        "expected replica_groups such as {{0,1},{2,3}}, [2,4]<=[8] or mesh['a'=2,'b'=4] {'b'}, "
        f"not {value!r}."
    )


def _largest_exchange(instruction: Instruction) -> int:
    """Devices of the largest set that source-target pairs tie together, as a ring does."""
    value = instruction.attributes.get("source_target_pairs", "")
    if not _PAIRS.fullmatch(value):
        raise instruction.error(
            f"expected source_target_pairs such as {{{{0,1}},{{1,0}}}}, not {value!r}."
        )
    sets: list[set[str]] = []
    for source, target in re.findall(r"(\d+),(\d+)", value):
        pair = {source, target}
        tied = [members for members in sets if members & pair]
        sets = [members for members in sets if not members & pair] + [pair.union(*tied)]
    return max((len(members) for members in sets), default=1)
