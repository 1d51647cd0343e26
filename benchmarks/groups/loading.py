"""How long the data set takes from files on this machine to arrays."""

from typing import Any

from benchmarks.figures import Rounds, claim, paired_ratio
from benchmarks.group import Group
from benchmarks.tasks.loading import READ, RETURNED
from benchmarks.variant import Variant

TASK = "benchmarks.tasks.loading"


def claims(rounds: Rounds) -> list[Any]:
    """How much faster our cache is to be than others' files."""
    text = "our cache is read, every byte of it, so many times as fast as"
    others = (("gz", "the .gz files", 15), ("torchvision", "torchvision's raw files", 4))
    return [
        claim(f"{text} {label}", paired_ratio(rounds, name, "ours", READ), ">=", wanted)
        for name, label, wanted in others
    ]


GROUP = Group(
    name="loading",
    title="Loading Fashion-MNIST from local files",
    how="All four files, from the system's memory of the disk, in a process that has read them before.",
    variants=(
        Variant("ours", "course_utils, from its cache", f"{TASK}:Ours"),
        Variant("gz", "the .gz files, unpacked and parsed", f"{TASK}:Packed"),
        Variant("torchvision", "torchvision", f"{TASK}:Torchvision", needs="torchvision"),
        Variant("keras", "Keras", f"{TASK}:Keras", needs="keras"),
    ),
    columns=(RETURNED, READ),
    rounds=15,
    quick_rounds=3,
    claims=claims,
)
