"""What a factor between two updates says: which number of devices it is, and so what went wrong."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

# As optax names the state of its optimizers; "m" and "v" are what hand-written ones use.
_SECOND_MOMENT = re.compile(r"(\.|\[')(nu|v|v_row|v_col|sum_of_squares)\b")
_FIRST_MOMENT = re.compile(r"(\.|\[')(mu|m|trace|momentum)\b")


@dataclass(frozen=True)
class Named:
    """A factor with a meaning: its kind ("sum", "mean", "root", "sign") and its description."""

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


def name_factor(factor: float, path: str, axes: Mapping[str, int], devices: int) -> Named | None:
    """Find what a factor is made of: the mesh axes' sizes, the devices', their square, root, ...

    Args:
        factor: of a leaf's update, parallel over reference.
        path: the leaf's; a second moment is quadratic in the gradient, so squares come first.
        axes: sizes by name, the likeliest first.
        devices: how many the parallel step used.
    """
    sizes = _sizes(axes, devices)
    plain = [(n, "sum", f"{n} = {said}") for n, said in sizes.items()]
    plain += [(1 / n, "mean", f"1/{n}, with {n} = {said}") for n, said in sizes.items()]
    squares = [(n * n, "sum", f"{n} squared, with {n} = {said}") for n, said in sizes.items()]
    squares += [(n**-2, "mean", f"1/{n} squared, with {n} = {said}") for n, said in sizes.items()]
    roots = [(math.sqrt(n), "root", f"the root of {n} = {said}") for n, said in sizes.items()]
    first = [*squares, *plain] if is_second_moment(path) else [*plain, *squares]
    for value, kind, text in [*first, *roots, (-1.0, "sign", "the opposite sign")]:
        if abs(factor - value) <= 0.01 * abs(value):
            return Named(kind, text)
    return None


def _sizes(axes: Mapping[str, int], devices: int) -> dict[int, str]:
    sizes: dict[int, str] = {}
    for axis, size in axes.items():
        if size > 1:
            said = sizes.get(size)
            sizes[size] = f"{said} or {axis!r}" if said else f"the size of mesh axis {axis!r}"
    if devices > 1 and devices not in sizes:
        sizes[devices] = "the number of devices"
    return sizes
