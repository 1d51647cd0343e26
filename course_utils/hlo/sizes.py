"""How many bytes the value of an HLO instruction takes on one device."""

import math
import re

from course_utils.hlo.module import Instruction

# Bits per element, by the names of XLA's xla_data.proto. A token orders effects, without data.
_BITS_NAMED = {
    0: "token",
    4: "f4e2m1fn",
    6: "f6e2m3fn f6e3m2fn",
    8: "pred f8e3m4 f8e4m3 f8e4m3b11fnuz f8e4m3fn f8e4m3fnuz f8e5m2 f8e5m2fnuz f8e8m0fnu",
    16: "bf16 f16",
    32: "f32",
    64: "f64 c64",
    128: "c128",
}
_BITS = {name: bits for bits, names in _BITS_NAMED.items() for name in names.split()}
_BITS |= {f"{sign}{bits}": bits for sign in "su" for bits in (1, 2, 4, 8, 16, 32, 64)}

_ARRAY = re.compile(r"(?P<dtype>\w+)\[(?P<sizes>[^\]]*)\](?:\{(?P<layout>[^}]*)\})?")


def result_bytes(instruction: Instruction) -> int:
    """Bytes of the result; the sum over its arrays where it is a tuple.

    Elements count, not the padding of a tiled layout. A type of fewer than eight bits takes a
    whole byte unless its layout says that it is packed, as in `s4[8]{0:E(4)}`: so XLA stores it.

    Raises:
        ValueError: a type or a size that isn't known.
    """
    if not re.fullmatch(r"[(),\s]*", _ARRAY.sub("", instruction.shape)):
        raise instruction.error(
            f"expected a shape such as f32[8,4]{{1,0}}, not {instruction.shape!r}."
        )
    return sum(_array_bytes(instruction, array) for array in _ARRAY.finditer(instruction.shape))


def _array_bytes(instruction: Instruction, array: re.Match[str]) -> int:
    if array["dtype"] not in _BITS:
        known = ", ".join(sorted(_BITS))
        raise instruction.error(f"unknown type {array['dtype']!r}; known are {known}.")
    if not re.fullmatch(r"((<=)?\d+(,(<=)?\d+)*)?", array["sizes"]):
        raise instruction.error(f"expected sizes such as 8,4, not {array['sizes']!r}.")
    # f32[<=8]: at most 8, which is what its buffer holds.
    elements = math.prod(int(size) for size in re.findall(r"\d+", array["sizes"]))
    packed = re.search(r"E\((\d+)\)", array["layout"] or "")
    bits = int(packed[1]) if packed else 8 * math.ceil(_BITS[array["dtype"]] / 8)
    return math.ceil(elements * bits / 8)
