"""Count the matrix-multiplication work of a function, from its traced program."""

import math
from collections.abc import Callable
from typing import Any

import jax

from course_utils.jaxprs import inner_jaxprs


def matmul_flops(function: Callable[..., Any], *args: Any) -> int:
    """Floating-point operations of all matrix products in one call of `function(*args)`.

    A product of (m, k) with (k, n) counts 2·m·k·n. Products inside `lax.scan` count once per
    iteration, inside `shard_map` once per device. Element-wise work is not counted: in a
    training step it is small beside the products, and it isn't what a matmul rate measures.

    Args:
        function: anything that JAX can trace; it is traced, not run.
        *args: example arguments, or `jax.ShapeDtypeStruct`s of the same shapes.

    Raises:
        ValueError: the program has a `while_loop` with a product inside; its trip count
            isn't known before it runs.
    """
    return _count(jax.make_jaxpr(function)(*args).jaxpr)


def _count(jaxpr: Any) -> int:
    return sum(_count_equation(equation) for equation in jaxpr.eqns)


def _count_equation(equation: Any) -> int:
    if equation.primitive.name == "dot_general":
        return _dot_flops(equation)
    inner = [_count(jaxpr) for jaxpr in inner_jaxprs(equation.params)]
    match equation.primitive.name:
        case "scan":
            return equation.params["length"] * sum(inner)
        case "shard_map":
            return equation.params["mesh"].size * sum(inner)
        case "cond":
            return max(inner)
        case "while" if sum(inner):
            raise ValueError(
                "matmul_flops can't count a matrix product inside a while_loop, whose number of "
                "iterations isn't known before it runs: use lax.scan or lax.fori_loop with "
                "constant bounds inside grad, or count the body alone."
            )
    return sum(inner)


def _dot_flops(equation: Any) -> int:
    (contracted, _), _ = equation.params["dimension_numbers"]
    left = equation.invars[0].aval.shape
    terms = math.prod(left[axis] for axis in contracted)
    return 2 * math.prod(equation.outvars[0].aval.shape) * terms
