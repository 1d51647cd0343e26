"""What a factor between two updates says: which number of devices it is, and so what went wrong."""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

from course_utils.equivalence._sizes import Sizes

# As optax names the state of its optimizers; "m" and "v" are what hand-written ones use.
_SECOND_MOMENT = re.compile(r"(\.|\[')(nu|v|v_row|v_col|sum_of_squares)\b")
_FIRST_MOMENT = re.compile(r"(\.|\[')(mu|m|trace|momentum)\b")


@dataclass(frozen=True)
class Named:
    """A factor with a meaning: its kind and its description.

    The kind is "sum" or "mean" (over devices), "micro-sum" or "micro-mean" (over micro-batches),
    "example-sum" or "example-mean", "padding" (over padding too), "root", "sign" or "integer".
    """

    kind: str
    text: str


def is_moment(path: str) -> bool:
    """Whether a leaf is an optimizer's running moment of the gradient, by its name."""
    return is_first_moment(path) or is_second_moment(path)


def is_second_moment(path: str) -> bool:
    """Whether a leaf is a running mean of the gradient's square, as Adam divides by."""
    return _SECOND_MOMENT.search(path) is not None


def is_first_moment(path: str) -> bool:
    """Whether a leaf is a running mean of the gradient itself, so linear in it."""
    return _FIRST_MOMENT.search(path) is not None


def name_factor(factor: float, path: str, sizes: Sizes) -> Named | None:
    """Find what a factor is made of: the mesh axes' sizes, the devices', their square, root, ...

    Args:
        factor: of a leaf's update, parallel over reference.
        path: the leaf's; a second moment is quadratic in the gradient, so squares come first.
        sizes: what it may be made of.
    """
    devices = list(_of_devices(sizes))
    squares = [(v * v, k, f"{n} squared, with {n} = {said}") for v, k, n, said in devices]
    plain = [
        (v, k, f"{n} = {said}" if v > 1 else f"1/{n}, with {n} = {said}")
        for v, k, n, said in devices
    ]
    roots = [
        (math.sqrt(v), "root", f"the root of {n} = {said}") for v, _, n, said in devices if v > 1
    ]
    first = [*squares, *plain] if is_second_moment(path) else [*plain, *squares]
    signs = [(-1.0, "sign", "the opposite sign")]
    others = list(_of_examples(sizes))
    squared = [(v * v, k, f"{said}, squared") for v, k, said in others]
    last = [*squared, *others] if is_second_moment(path) else [*others, *squared]
    for value, kind, text in [*first, *roots, *signs, *last]:
        if abs(factor - value) <= 0.01 * abs(value):
            return Named(kind, text)
    return _integer(factor)


def _of_devices(sizes: Sizes) -> Iterator[tuple[float, str, int, str]]:
    for n, said in sizes.of_devices().items():
        yield n, "sum", n, said
    for n, said in sizes.of_devices().items():
        yield 1 / n, "mean", n, said


def _of_examples(sizes: Sizes) -> Iterator[tuple[float, str, str]]:
    micro, rows, real = sizes.micro_batches, sizes.rows, sizes.real
    if micro > 1:
        yield micro, "micro-sum", f"{micro} = the number of micro-batches"
        yield 1 / micro, "micro-mean", f"1/{micro}, with {micro} = the number of micro-batches"
    if 0 < real < rows:
        yield real / rows, "padding", f"{real}/{rows}, the share of real examples in the batch"
    own = rows // sizes.shards
    for count, said in (
        (real, "the number of examples in the batch"),
        (rows, "the number of rows in the batch, with its padding"),
        (own, "the number of examples on each device"),
    ):
        if count > 1:
            yield count, "example-sum", f"{count} = {said}"
            yield 1 / count, "example-mean", f"1/{count}, with {count} = {said}"


def _integer(factor: float) -> Named | None:
    if factor > 1.5 and abs(factor - round(factor)) < 1e-3 * factor and factor < 1000:
        return Named("integer", f"{round(factor)}, which is no number of devices")
    return None
