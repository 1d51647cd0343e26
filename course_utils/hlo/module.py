"""An HLO module as read from its text: computations, and the instructions in them."""

import re
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Instruction:
    """One line of HLO: `%name = shape opcode(operands), attribute=value, ...`."""

    line: int
    name: str
    shape: str
    opcode: str
    operands: tuple[str, ...]
    attributes: dict[str, str]

    def error(self, problem: str) -> ValueError:
        """Make the error that says where in the text the problem is."""
        return ValueError(f"HLO text, line {self.line}, {self.opcode} %{self.name}: {problem}")

    def number(self, attribute: str | None = None) -> int:
        """Return the integer that an attribute, or else the first operand, holds."""
        found = self.attributes.get(attribute) if attribute else "".join(self.operands[:1])
        if not re.fullmatch(r"\d+", found or ""):
            raise self.error(f"expected a number as its {attribute or 'operand'}, not {found!r}.")
        return int(found)


@dataclass
class Computation:
    """A named list of instructions in order, of which `root` is what it returns."""

    name: str
    line: int
    instructions: dict[str, Instruction] = field(default_factory=dict)
    root: Instruction | None = None

    def check(self) -> None:
        """Raise a ValueError unless it has a root and defines every operand that it uses."""
        if self.root is None:
            raise ValueError(f"HLO text, line {self.line}: %{self.name} has no ROOT instruction.")
        for instruction in self.instructions.values():
            # What stands between their brackets is a value and a position.
            if instruction.opcode not in ("constant", "parameter"):
                for operand in instruction.operands:
                    if operand not in self.instructions:
                        raise instruction.error(f"its operand %{operand} isn't defined.")


@dataclass
class Module:
    """Every computation by name, which of them runs first, and on how many devices.

    Attributes:
        replicas, partitions: what the text says of them; None where it says nothing.
    """

    computations: dict[str, Computation]
    entry: Computation
    replicas: int | None
    partitions: int | None

    def called(self, caller: Instruction, *attributes: str) -> list[Computation]:
        """Return the computations that these attributes of `caller` name, in their order."""
        values = [caller.attributes[key] for key in attributes if key in caller.attributes]
        names = [name for value in values for name in re.findall(r"[\w.\-]+", value)]
        for name in names:
            if name not in self.computations:
                raise caller.error(f"it calls %{name}, which isn't defined.")
        return [self.computations[name] for name in names]

    def called_once(self, caller: Instruction, *attributes: str) -> Computation:
        """Return the one computation that these attributes of `caller` name."""
        called = self.called(caller, *attributes)
        if len(called) != 1:
            raise caller.error(f"expected one computation as its {' or '.join(attributes)}.")
        return called[0]
