"""Walk through the computations of an HLO module and count the collectives executed."""

import re
from collections import Counter

from course_utils.hlo.groups import group_size
from course_utils.hlo.module import Computation, Instruction, Module
from course_utils.hlo.sizes import result_bytes
from course_utils.hlo.trips import trip_count

# https://openxla.org/xla/operation_semantics; opcodes in xla/hlo/ir/hlo_opcode.h.
KINDS = (
    "all-gather",
    "all-reduce",
    "all-to-all",
    "collective-broadcast",
    "collective-permute",
    "ragged-all-to-all",
    "reduce-scatter",
)
_COMMUNICATES = re.compile(r"(ragged-)?all-.*|collective-.*|.*-to-all(-start)?|send|recv")
_GROUPED = {"channel_id", "replica_groups", "source_target_pairs"}
_CALLS_ONCE = ("async-start", "call", "call-start", "fusion", "fusion-start")
_CALLING = ("calls", "to_apply", "called_computations", "select", "scatter")
_BRANCHES = ("branch_computations", "true_computation", "false_computation")

# How often each (kind, bytes, group size) is executed.
Counts = Counter[tuple[str, int, int]]


class Walk:
    """Counts per computation, each worked out once."""

    def __init__(self, module: Module):
        self.module = module
        self._known: dict[str, Counts | None] = {}

    def executed_by_module(self) -> Counts:
        """Count what one call of the module executes.

        Raises:
            ValueError: something that communicates can't be counted; names the line.
        """
        counts = self.executed(self.module.entry)
        for computation in self.module.computations.values():
            # XLA prints none that nothing calls: the call is there, and wasn't understood.
            if computation.name not in self._known and self.executed(computation):
                raise ValueError(
                    f"HLO text, line {computation.line}: %{computation.name} holds collectives, "
                    "and nothing here is known to call it."
                )
        return counts

    def executed(self, computation: Computation) -> Counts:
        """Count what one run of a computation executes, and of all that it calls."""
        if computation.name not in self._known:
            self._known[computation.name] = None  # until it is known: it is being counted
            counts: Counts = Counter()
            for instruction in computation.instructions.values():
                counts.update(self._executed_by(instruction, computation))
            self._known[computation.name] = counts
        known = self._known[computation.name]
        if known is None:
            raise ValueError(f"HLO text, line {computation.line}: it calls itself.")
        return known

    def _executed_by(self, instruction: Instruction, inside: Computation) -> Counts:
        opcode = instruction.opcode
        if opcode.endswith(("-done", "-update")):
            return Counter()  # counted at its start
        kind = opcode.removesuffix("-start")
        if kind in KINDS:
            return Counter([self._payload(kind, instruction, inside)])
        if opcode == "while":
            return self._executed_by_loop(instruction, inside)
        if opcode == "conditional":
            return self._executed_by_dearest_branch(instruction)
        _refuse_unknown_communication(instruction)
        counts: Counts = Counter()
        for called in self.module.called(instruction, *_CALLING):
            counts.update(self.executed(called))
        if counts and opcode not in _CALLS_ONCE:
            raise instruction.error("how often it runs the collectives that it calls isn't known.")
        return counts

    def _executed_by_loop(self, loop: Instruction, inside: Computation) -> Counts:
        body = self.executed(self.module.called_once(loop, "body"))
        condition = self.executed(self.module.called_once(loop, "condition"))
        if not body and not condition:
            return Counter()  # an unknown trip count does no harm here
        trips = trip_count(loop, inside, self.module)
        counts = Counter({key: trips * n for key, n in body.items()})
        # The condition is evaluated once more, to end the loop.
        counts.update({key: (trips + 1) * n for key, n in condition.items()})
        return counts

    def _executed_by_dearest_branch(self, conditional: Instruction) -> Counts:
        branches = self.module.called(conditional, *_BRANCHES)
        if len(branches) < 2:
            raise conditional.error(f"expected its branches as {' or '.join(_BRANCHES)}.")
        return max((self.executed(branch) for branch in branches), key=_cost)

    def _payload(
        self, kind: str, instruction: Instruction, inside: Computation
    ) -> tuple[str, int, int]:
        if kind == "collective-permute" and "slice_sizes" in instruction.attributes:
            raise instruction.error("a permute of slices in place can't be counted.")
        group = group_size(kind, instruction, self.module)
        # The other operands of a ragged all-to-all are its result's buffer, offsets and sizes.
        operands = instruction.operands[:1] if kind.startswith("ragged") else instruction.operands
        given = sum(result_bytes(inside.instructions[operand]) for operand in operands)
        received = {"all-gather": given * group, "reduce-scatter": given // group}.get(kind, given)
        # A start returns operands and results together: nothing to compare there.
        if instruction.opcode == kind and kind != "ragged-all-to-all":
            result = result_bytes(instruction)
            if result != received:
                raise instruction.error(
                    f"expected a result of {received} bytes, from operands of {given} bytes in "
                    f"groups of {group}, not of {result}."
                )
        return kind, max(given, received) if group > 1 else 0, group


def _cost(counts: Counts) -> tuple[int, int]:
    return sum(n * size for (_, size, _), n in counts.items()), counts.total()


def _refuse_unknown_communication(instruction: Instruction) -> None:
    to_host = instruction.attributes.get("is_host_transfer") == "true"
    if instruction.opcode in ("send", "recv") and to_host:
        return
    if _GROUPED & instruction.attributes.keys() or _COMMUNICATES.fullmatch(instruction.opcode):
        raise instruction.error(
            f"it communicates in a way that isn't known here; known are {', '.join(KINDS)}."
        )
