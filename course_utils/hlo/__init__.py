"""What a compiled step communicates: its collectives, how often they run and what they carry.

`collectives(compiled)` reads the program that XLA made, not the one that was written: whether
`jit` with sharded arrays or `shard_map` asked for them, the collectives found here are executed.
"""

from course_utils.hlo.counting import Collective, Totals, collectives, totals

__all__ = ["Collective", "Totals", "collectives", "totals"]
