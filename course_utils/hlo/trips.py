"""How often an HLO while loop runs."""

import re
from typing import Any

from course_utils.hlo.module import Computation, Instruction, Module

# What XLA found out itself, in the loop's backend_config.
_KNOWN = re.compile(r'"known_trip_count":\s*\{\s*"n":\s*"?(\d+)')
_SCALAR_OR_TUPLE = re.compile(r"\(.*|\w+\[\].*")
# The value of a loop body's parameter, whose elements a counter is one of.
_CARRY = ("carry",)


def trip_count(loop: Instruction, inside: Computation, module: Module) -> int:
    """Times that the body of `loop`, an instruction of `inside`, runs.

    XLA's own figure where it gives one; otherwise what follows from a counter that starts at a
    constant, changes by a constant and is compared with a constant.

    Raises:
        ValueError: neither tells.
    """
    known = _KNOWN.search(loop.attributes.get("backend_config", "").replace("\\", ""))
    if known:
        return int(known[1])
    condition = module.called_once(loop, "condition")
    body = module.called_once(loop, "body")
    match _value(condition.root, condition, module, _CARRY):
        case ("compare", ("element", index), int(limit), direction):
            after = _element(_value(body.root, body, module, _CARRY), index)
            start = _element(_operand(loop, inside, module), index)
            match start, after:
                case int(), ("add", ("element", counter), int(step)) if counter == index:
                    steps = _steps(start, limit, step, direction)
                    if steps is not None:
                        return len(steps)
    raise loop.error(
        "it holds collectives, and how often it runs isn't known before it runs: it has no "
        "known_trip_count, and its condition is no counter compared with a constant. Use "
        "lax.scan, or lax.fori_loop with constant bounds, or count the body alone."
    )


def _operand(loop: Instruction, inside: Computation, module: Module) -> Any:
    operands = [_value(inside.instructions[name], inside, module) for name in loop.operands]
    return operands[0] if operands else None


def _steps(start: int, limit: int, step: int, direction: str) -> range | None:
    match direction:
        case "LT" if step > 0:
            return range(start, limit, step)
        case "LE" if step > 0:
            return range(start, limit + 1, step)
        case "GT" if step < 0:
            return range(start, limit, step)
        case "GE" if step < 0:
            return range(start, limit - 1, step)
    return None


def _value(instruction: Instruction, inside: Computation, module: Module, *arguments: Any) -> Any:
    """Evaluate the little that a loop counter needs; None for everything else.

    Integers stand for themselves, ("element", i) for the i-th value that the loop carries, and
    `arguments` for the parameters of the computation.
    """
    if not _SCALAR_OR_TUPLE.fullmatch(instruction.shape):
        return None
    if instruction.opcode == "constant":
        literal = "".join(instruction.operands)
        return int(literal) if re.fullmatch(r"-?\d+", literal) else None
    if instruction.opcode == "parameter":
        return dict(enumerate(arguments)).get(instruction.number())
    if instruction.opcode not in _FOLLOWED:
        return None
    operands = [
        _value(inside.instructions[name], inside, module, *arguments)
        for name in instruction.operands
    ]
    if instruction.opcode in ("fusion", "call"):
        called = module.called_once(instruction, "calls", "to_apply")
        return _value(called.root, called, module, *operands)
    return _combine(instruction, operands)


_FOLLOWED = ("fusion", "call", "tuple", "get-tuple-element", "copy", "bitcast", "add", "compare")


def _combine(instruction: Instruction, operands: list[Any]) -> Any:
    match instruction.opcode, operands:
        case "tuple", _:
            return ("tuple", operands)
        case "get-tuple-element", [value]:
            return _element(value, instruction.number("index"))
        case (("copy" | "bitcast"), [value]):
            return value
        case "add", (
            [("element", _) as element, int(step)] | [int(step), ("element", _) as element]
        ):
            return ("add", element, step)
        case "compare", [("element", _) as element, int(limit)]:
            return ("compare", element, limit, instruction.attributes.get("direction"))
    return None


def _element(value: Any, index: int) -> Any:
    match value:
        case ("carry",):
            return ("element", index)
        case ("tuple", elements) if index < len(elements):
            return elements[index]
    return None
