"""Count the collectives that one call of a compiled program executes."""

from collections.abc import Iterable
from typing import NamedTuple

import jax

from course_utils.hlo.text import parse
from course_utils.hlo.walk import Walk


class Collective(NamedTuple):
    """Collectives of one kind and size.

    Attributes:
        kind: the HLO opcode, such as "all-reduce"; "all-reduce-start" and "-done" are one.
        executions: how often a device takes part in one per call of the program.
        bytes: payload of one execution on one device: the larger of what goes in and what comes
            out. So the reduced arrays of an all-reduce, the result of an all-gather, the operand
            of a reduce-scatter, all that an all-to-all exchanges, what a permute hands on. How
            much of it crosses links depends on the algorithm: a ring all-reduce of N devices
            sends 2·(N-1)/N of it. A group of one moves 0 bytes.
        group_size: devices that take part together; the largest group where they differ, and
            for a permute the largest set that hands around among itself.
    """

    kind: str
    executions: int
    bytes: int
    group_size: int

    @property
    def total_bytes(self) -> int:
        """Payload of all executions together, in bytes."""
        return self.executions * self.bytes


class Totals(NamedTuple):
    """Executions and payload bytes per call of a program, on one device."""

    executions: int
    bytes: int


def totals(found: Iterable[Collective]) -> Totals:
    """Sum over collectives: how many are executed per call, and their payload in bytes."""
    found = list(found)
    return Totals(sum(c.executions for c in found), sum(c.total_bytes for c in found))


def collectives(compiled: jax.stages.Compiled | str) -> list[Collective]:
    """Return the collectives that one call of a compiled program executes on each device.

    Those inside `lax.scan` count once per iteration, also through nested loops. Of the branches
    of a `lax.cond` only the dearest counts: the most bytes, then the most executions. Those of
    one kind, size and group size are one record; the largest total comes first. Bytes are those
    of the arrays that XLA really sends: for CPU devices it widens bfloat16 to float32 first. What
    a custom call or a host callback sends can't be seen.

    Args:
        compiled: `jitted.lower(...).compile()`, or the HLO text of its `as_text()`, for CPU or
            GPU. The program isn't run.

    Raises:
        TypeError: not a compiled program.
        ValueError: the text isn't HLO, isn't whole, or has something in it that can't be counted,
            such as a collective in a `while_loop` without a constant number of iterations. The
            message names the line.

    Example:
        >>> collectives(jax.jit(step).lower(state, batch).compile())
        [Collective(kind='all-reduce', executions=1, bytes=7454768, group_size=8)]
    """
    text = compiled if isinstance(compiled, str) else _text_of(compiled)
    counts = Walk(parse(text)).executed_by_module()
    found = [Collective(kind, n, size, group) for (kind, size, group), n in counts.items() if n]
    return sorted(found, key=lambda c: (-c.total_bytes, -c.executions, c.kind, c.group_size))


def _text_of(compiled: jax.stages.Compiled) -> str:
    text = compiled.as_text() if hasattr(compiled, "as_text") else None
    if not isinstance(text, str):
        raise TypeError(
            "collectives needs a compiled program, such as jax.jit(step).lower(state, "
            f"batch).compile(), or its HLO text, not {type(compiled).__name__}."
        )
    return text
