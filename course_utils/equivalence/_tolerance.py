"""How much a right step may differ, by the precision it computes in."""

import contextlib
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp

from course_utils.equivalence._placed import is_data
from course_utils.jaxprs import inner_jaxprs

# Errors as a fraction of the way a leaf has walked. A sum over N shards runs in another order than
# a sum over the whole batch, and every rounding may fall the other way. Seen on right steps of a
# 784-128-10 network (batch 512 and 2,048, fresh and after 150 steps, 2 to 8 devices, 1 to 10 steps,
# SGD, momentum, Adam): float32 gradients differ by up to 2e-6, moments by 6e-6; with TF32 products
# (emulated: 10 bits of mantissa) 6e-4; computed in bfloat16 1.2e-2, which is 3 of its roundings
# (2^-8). The tolerances are about four times that. They needn't grow with the steps, since the way
# grows too. The faults looked for are far larger: a factor of 2 is an error of 1.
TOLERANCE = {"float64": 1e-11, "float32": 1e-5, "tf32": 2e-3, "float16": 1e-2, "bfloat16": 5e-2}

# Adam divides by the root of its second moment, so an entry whose gradient is nothing but rounding
# moves as far as any other. Its moments don't have that trouble, until they see such parameters.
ADAM_PARAMETERS, ADAM_LATER = 1e-3, 1e-4
# From the second step on, a metric such as a gradient is that of parameters which have already
# moved apart by their rounding, and it may cancel where they didn't: 1.1e-5 was seen on a block of
# width 16 after ten SGD steps, with parameters equal to 1.4e-6. The first step stays strict.
METRICS_LATER = 1e-4


def tolerance(dtype: str) -> float:
    """The default for leaves of `dtype`; the narrow ones (float8 and such) count as bfloat16."""
    if dtype in ("", "complex64"):  # a Python number usually was a float32 before
        return TOLERANCE["float32"]
    return TOLERANCE[
        "float64" if dtype == "complex128" else dtype if dtype in TOLERANCE else "bfloat16"
    ]


def spacing(precision: str) -> float:
    """The distance of 1 to the next larger number: what rounding may move a value by, relatively."""
    if precision == "tf32":
        return 2.0**-10
    return float(jnp.finfo(precision).eps)


def matmul_precision(device: jax.Device) -> str:
    """What float32 matrix products are computed in: "tf32" on GPUs, unless the precision is raised."""
    raised = jax.config.jax_default_matmul_precision not in (None, "default", "tensorfloat32")
    return "float32" if device.platform == "cpu" or raised else "tf32"


def compute_precision(step: Any, arguments: tuple[Any, ...]) -> str:
    """The narrowest float that a step computes in, as its traced program tells.

    "float32" where it has none, or can't be traced.
    """
    with contextlib.suppress(Exception):  # a step may be anything; then its leaves' dtypes decide
        leaves, tree = jax.tree.flatten(arguments)
        arrays = {i: leaf for i, leaf in enumerate(leaves) if is_data(leaf)}

        def called(arrays: dict[int, Any]) -> list[Any]:
            # Functions that a module carries along can't be traced, so they stay as they are.
            result = step(
                *jax.tree.unflatten(tree, [arrays.get(i, x) for i, x in enumerate(leaves)])
            )
            return [leaf for leaf in jax.tree.leaves(result) if is_data(leaf)]

        program = jax.make_jaxpr(called)(arrays)
        found = {dtype for dtype in _dtypes(program.jaxpr) if jnp.issubdtype(dtype, jnp.floating)}
        return max(map(str, found), key=tolerance, default="float32")
    return "float32"


def _dtypes(jaxpr: Any) -> Iterator[Any]:
    for equation in jaxpr.eqns:
        yield from (out.aval.dtype for out in equation.outvars if hasattr(out.aval, "dtype"))
        for inner in inner_jaxprs(equation.params):
            yield from _dtypes(inner)
