"""Exercise 02.2: a forward pass that takes a dtype, compiled once for each."""

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from course_utils.compiles import count_compiles
from course_utils.exercises.definition import defined
from course_utils.exercises.forms import function
from course_utils.jaxprs import inner_jaxprs


@defined(
    "02.2",
    "Repair a forward pass that takes a dtype",
    kind="find the fault",
    trains=("write a forward pass with a compute dtype",),
    form=function("params", "images", "compute_dtype"),
    hints=(
        "Three things are wrong: one is about `jit`, one about what is computed in `compute_dtype`, one "
        "about what is returned.",
        "A decorator with options is written `@functools.partial(jax.jit, ...)`. What goes into a "
        "product decides in which dtype it is computed: all that goes into it.",
    ),
    right="What chooses a program is static, what goes through it is cast on the way in, and what "
    "the loss is made of is cast on the way out.",
)
def scores(scores: Callable, params: Any, images: Any) -> Iterator[tuple[Any, str]]:
    """Call it with both dtypes; count compiles, look at dtypes and at the rounding of values."""
    yield (
        not hasattr(scores, "lower"),
        "That function isn't jitted: it runs operation by operation, compiled for nobody.",
    )
    try:
        plain, rounded = (
            jax.device_get(scores(params, images, dtype)) for dtype in ("float32", "bfloat16")
        )
    except (TypeError, ValueError) as error:
        said = str(error)
        yield "hashable" in said, "Only `compute_dtype` is static: arrays can't be."
        yield (
            "abstract array" in said or "valid JAX type" in said,
            "`jit` takes `compute_dtype` for an array.",
        )
        raise
    yield plain is None, "Your function returns nothing: return the logits."
    # Before the look below, which traces once more.
    with count_compiles() as compiles:
        for dtype in ("float32", "bfloat16", "float32"):
            jax.block_until_ready(scores(params, images, dtype))
    products = _product_dtypes(jax.make_jaxpr(scores, static_argnums=2)(params, images, "bfloat16"))
    yield (
        products == {"float32"},
        "With bfloat16 it multiplies just what it does with float32: nothing is cast.",
    )
    yield (
        products != {"bfloat16"},
        "With bfloat16, a product still has a float32 factor, and so is one of float32. Where does "
        "that factor come from?",
    )
    yield from _values(plain, rounded, params, images)
    yield (
        compiles.count > 0,
        f"Dtypes that it had seen before made {compiles.count} new compiles: nothing is kept.",
    )


def _values(
    plain: np.ndarray, rounded: np.ndarray, params: Any, images: Any
) -> Iterator[tuple[Any, str]]:
    wanted = {name: _logits(params, images, name) for name in ("float32", "bfloat16")}
    size = np.abs(wanted["float32"]).max()
    # A GPU that multiplies in TF32 is off by about 1e-3; another layer or activation by far more.
    yield (
        plain.shape != wanted["float32"].shape
        or np.abs(plain - wanted["float32"]).max() > 0.02 * size,
        "In float32, those aren't the logits of this network. Is it still the same layers?",
    )
    yield (
        rounded.dtype == jnp.bfloat16,
        "The logits come out as bfloat16, and so would the loss that is made of them.",
    )
    yield rounded.dtype != np.float32, f"The logits come out as {rounded.dtype}, not as float32."
    yield (
        np.abs(rounded - wanted["bfloat16"]).max() > 0.1 * size,
        "In bfloat16 the logits are further off than its rounding explains.",
    )


def _product_dtypes(jaxpr: Any) -> set[str]:
    """Dtypes of all that goes into matrix products of a program."""
    found = set()
    for equation in getattr(jaxpr, "jaxpr", jaxpr).eqns:
        if equation.primitive.name == "dot_general":
            found |= {str(operand.aval.dtype) for operand in equation.invars}
        for inner in inner_jaxprs(equation.params):
            found |= _product_dtypes(inner)
    return found


def _logits(params: Any, images: Any, dtype: str) -> np.ndarray:
    """The lesson's forward pass, in float32 outside."""
    *hidden, last = jax.tree.map(lambda x: x.astype(dtype), params)
    x = images.astype(dtype)
    for layer in hidden:
        x = jax.nn.gelu(x @ layer["W"] + layer["b"])
    return np.asarray((x @ last["W"] + last["b"]).astype(jnp.float32))
