"""Read the text of a compiled HLO module."""

import re

from course_utils.hlo.module import Computation, Instruction, Module

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|["()\[\]{},]')
_INDEX_COMMENT = re.compile(r"/\*index=\d+\*/")
_HEADER = re.compile(r"(?P<entry>ENTRY )?%?(?P<name>[\w.\-]+) (?:\(.*\) -> .* )?\{")
_END = re.compile(r"\}(, .*)?")
_INSTRUCTION = re.compile(r"(?P<root>ROOT )?%?(?P<name>[\w.\-]+) = (?P<rest>.*)")
_OPERATION = re.compile(r"(?P<shape>\(.*?\)|\S+) (?P<opcode>[a-z][\w\-]*)\((?P<operands>.*)\)")
# Between the module's first line and its computations stand tables of source locations.
_TABLE = re.compile(r"FileNames|FunctionNames|FileLocations|StackFrames|\d+ .*")


def parse(text: str) -> Module:
    """Read a module as `compiled.as_text()` prints it; lines that start with // are comments.

    Raises:
        ValueError: the text is something else, or isn't whole; names the line.
    """
    stripped = (_INDEX_COMMENT.sub("", line).strip() for line in text.splitlines())
    lines = [(n, line) for n, line in enumerate(stripped, 1) if line and not line.startswith("//")]
    if not lines or not lines[0][1].startswith("HloModule"):
        raise ValueError(_not_hlo(lines))
    computations: dict[str, Computation] = {}
    entry = current = None
    for number, line in lines[1:]:
        if current is None:
            if not (header := _HEADER.fullmatch(line)):
                if _TABLE.fullmatch(line):
                    continue
                raise _unreadable(number, "expected a computation", line)
            current = Computation(header["name"], number)
            entry = current if header["entry"] else entry
        elif _END.fullmatch(line):
            current.check()
            computations[current.name] = current
            current = None
        else:
            _add(current, number, line)
    if current is not None or entry is None:
        missing = f"the end of %{current.name}" if current else "an ENTRY computation"
        raise _unreadable(lines[-1][0], f"expected {missing} (was it cut short?)", "the end")
    return Module(computations, entry, *_device_counts(lines[0][1]))


def _not_hlo(lines: list[tuple[int, str]]) -> str:
    number, found = lines[0] if lines else (1, "")
    hint = ""
    if any("stablehlo." in line or line.startswith("module @") for _, line in lines):
        hint = " This is StableHLO, before XLA has put its collectives in: compile it first."
    return (
        f"HLO text, line {number}: expected 'HloModule ...', found {found[:60]!r}.{hint} "
        "Pass jitted.lower(...).compile(), or the text of its as_text()."
    )


def _unreadable(number: int, problem: str, found: str) -> ValueError:
    return ValueError(f"HLO text, line {number}: {problem}, found {found[:80]!r}.")


def _device_counts(header: str) -> list[int | None]:
    found = [re.search(rf"\b{k}=(\d+)", header) for k in ("replica_count", "num_partitions")]
    return [int(count[1]) if count else None for count in found]


def _add(computation: Computation, number: int, line: str) -> None:
    parts = _INSTRUCTION.fullmatch(line)
    first, *attributes = (_split(parts["rest"]) if parts else None) or [""]
    operation = _OPERATION.fullmatch(first)
    operands = _split(operation["operands"]) if operation else None
    if not parts or not operation or operands is None:
        raise _unreadable(number, "expected '%name = shape opcode(operands), ...'", line)
    if parts["name"] in computation.instructions:
        raise _unreadable(number, f"expected one %{parts['name']}", line)
    # Some versions print an operand's shape before its name.
    names = tuple(operand.split()[-1].removeprefix("%") for operand in operands if operand)
    pairs = (attribute.partition("=") for attribute in attributes)
    instruction = Instruction(
        line=number,
        name=parts["name"],
        shape=operation["shape"],
        opcode=operation["opcode"],
        operands=names,
        attributes={key: value for key, _, value in pairs},
    )
    computation.instructions[instruction.name] = instruction
    if parts["root"]:
        computation.root = instruction


def _split(text: str) -> list[str] | None:
    """Split at the commas outside brackets and strings; None if those don't come in pairs."""
    pieces, start, depth = [], 0, 0
    for token in _TOKEN.finditer(text):
        if token[0] in ("(", "[", "{"):
            depth += 1
        elif token[0] in (")", "]", "}"):
            depth -= 1
        elif token[0] == "," and depth == 0:
            pieces.append(text[start : token.start()].strip())
            start = token.end()
        if depth < 0 or token[0] == '"':
            return None
    return None if depth else [*pieces, text[start:].strip()]
