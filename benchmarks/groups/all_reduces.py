"""What the place of an all-reduce costs between processes: the ways of lessons 04 and 05."""

from typing import Any

from benchmarks.figures import Rounds, claim, paired_ratio, samples
from benchmarks.group import Group
from benchmarks.tasks.all_reduces import COUNT, MEGABYTES, TIME
from benchmarks.variant import Variant

TASK, STEPS = "benchmarks.tasks.all_reduces:Across", "8"


def claims(rounds: Rounds) -> list[Any]:
    """What the step of lesson 05 is to reach."""
    once = "the right data-parallel step executes so many all-reduces"
    faster = "across two processes it is so many times as fast as jit on sharded arrays"
    return [
        claim(once, samples(rounds, "shard_map", COUNT), "==", 1),
        claim(faster, paired_ratio(rounds, "jit", "shard_map", TIME), ">=", 2),
    ]


GROUP = Group(
    name="all-reduces",
    title="All-reduces across two processes",
    how=(
        "The shared block of lesson 04 (width 1024, applied 128 times, 16 examples a process), two "
        "processes on this machine, started anew each round; all-reduces as executed, from the program."
    ),
    variants=(
        Variant("jit", "jit on sharded arrays (lesson 04)", TASK, ("jit", STEPS)),
        Variant("lab", "the source lab's shard_map (wrong gradients)", TASK, ("lab", STEPS)),
        Variant("shard_map", "shard_map, averaged once (lesson 05)", TASK, ("shard_map", STEPS)),
    ),
    columns=(COUNT, MEGABYTES, TIME),
    rounds=7,
    quick_rounds=1,
    claims=claims,
    prepared=False,
    fresh=True,
)
