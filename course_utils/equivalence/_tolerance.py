"""How much a right step may differ, by the precision it computes in."""

import contextlib
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp

from course_utils.equivalence._placed import is_data
from course_utils.jaxprs import inner_jaxprs

# Errors as a fraction of the way a leaf has walked; u is half a spacing, what one rounding may add
# (float32 6e-8, TF32 4.9e-4, float16 4.9e-4, bfloat16 3.9e-3). An example's own numbers are rounded
# alike wherever it is computed; what differs is the order of the sum over examples. One device rounds
# the whole sum once, N devices round N partial sums, and then their mean. Both errors are random and
# independent, u / sqrt(3) at a time for an entry: together u * sqrt(2/3), that is 3.2e-3 in bfloat16.
# From the second step on parameters differ by that, and each layer rounds otherwise: some u more.
#
# Seen on right steps (784-128-10, batch 512 and 2,048, 2 and 8 devices, jit and shard_map, SGD and
# Adam, step 1 / up to step 10): gradients in float32 1.5e-7 / 1.4e-6, in float16 7.5e-4 / 8e-3 (small
# ones underflow besides), in bfloat16 5.2e-3 / 1.1e-2; Adam's parameters, which are no sums but
# quotients, in float16 1.4e-2, in bfloat16 3.0e-2, and 0.18 on one bias whose gradients nearly cancel:
# beyond any tolerance, which is what _noise.py is for. With TF32 products (emulated) 6e-4; a block
# that is applied again and again reaches 6e-6 in float32. They needn't grow with the steps, since the
# way grows too. The faults looked for are far larger: a factor of 2 is an error of 1.
TOLERANCE = {"float64": 1e-11, "float32": 1e-5, "tf32": 2e-3, "float16": 2e-2, "bfloat16": 5e-2}

# Adam divides by the root of its second moment, so an entry whose gradient is nothing but rounding
# moves as far as any other. Its moments don't have that trouble, until they see such parameters.
ADAM_PARAMETERS, ADAM_LATER = 1e-3, 1e-4
# From the second step on, a metric such as a gradient is that of parameters which have already
# moved apart by their rounding, and it may cancel where they didn't: 1.1e-5 was seen on a block of
# width 16 after ten SGD steps, with parameters equal to 1.4e-6. The first step stays strict.
METRICS_LATER = 1e-4


def tolerance(dtype: str) -> float:
    """The default for leaves of `dtype`; the narrow ones (float8 and such) count as bfloat16."""
    floats = dtype.startswith(("float", "bfloat", "complex"))
    if dtype == "complex64" or not floats:  # counts of float32 decisions, a Python number
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
