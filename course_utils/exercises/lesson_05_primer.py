"""Exercises 05.1 and 05.2: what a device sees, and what is the same on all of them."""

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

from course_utils.exercises.definition import defined
from course_utils.exercises.forms import choice, named, number, shape


@defined(
    "05.1",
    "Predict the shard that each device sees",
    kind="predict",
    trains=("predict what each device sees inside `shard_map`",),
    form=named(
        {"rows": shape(), "columns": shape(), "whole": shape(), "psum": number(), "pmean": number()}
    ),
    hints=(
        "A spec has one entry for each axis of the array; the axis whose entry is `data` is cut "
        "into as many pieces as there are devices.",
        "Write down the positions of three devices. What is their sum, and what do three devices "
        "see of 12 rows?",
    ),
    right="A spec says which axis is cut, the mesh into how many pieces, and a collective makes "
    "one value of the pieces' values.",
)
def shards(answer: dict[str, Any], mesh: Mesh, shape: tuple[int, int]) -> Iterator[tuple[Any, str]]:
    """Ask `shard_map` itself: by its shapes while it traces, and by a sum of positions."""
    whole, n = tuple(shape), mesh.size
    rows = _local_shape(mesh, P("data", None), whole)
    columns = _local_shape(mesh, P(None, "data"), whole)
    for name, truth, other in (("rows", rows, columns), ("columns", columns, rows)):
        seen = answer[name]
        yield (
            seen != truth and seen == whole,
            f"Under {name!r} stands the whole array. Its spec names `data`: something is cut.",
        )
        yield seen != truth and seen == other, f"Under {name!r}, the wrong axis is cut."
        yield (
            len(seen) != len(whole),
            f"Under {name!r} the number of axes has changed. An axis that is cut gets shorter, but "
            "stays.",
        )
        yield seen != truth, f"Under {name!r}: by how many devices is that axis divided?"
    yield answer["whole"] != whole, "`P()` names no axis of the mesh. What is cut then?"
    total, mean = _positions(mesh)
    swapped = answer["psum"] == mean and answer["pmean"] == total
    yield n > 1 and swapped, "`psum` and `pmean` are the wrong way round."
    yield (
        total != answer["psum"] == n * (n + 1) / 2,
        "The first position isn't 1: the table above counts devices in another way.",
    )
    yield (
        total != answer["psum"] == n,
        "That would be the sum of as many ones. The positions differ.",
    )
    yield answer["psum"] != total, "`psum` adds up the positions of all devices. Do so by hand."
    yield (
        abs(answer["pmean"] - mean) > 1e-3 * max(1.0, mean),
        "`pmean` is what `psum` gives, divided by the number of devices.",
    )


def _local_shape(mesh: Mesh, spec: P, whole: tuple[int, ...]) -> tuple[int, ...]:
    seen = []

    def look(x: jax.Array) -> jax.Array:
        seen.append(x.shape)
        return x

    looked = jax.shard_map(look, mesh=mesh, in_specs=spec, out_specs=spec)
    jax.eval_shape(looked, jax.ShapeDtypeStruct(whole, jnp.float32))
    return seen[0]


def _positions(mesh: Mesh) -> tuple[float, float]:
    """`psum` and `pmean` of the devices' positions."""

    def both() -> tuple[jax.Array, jax.Array]:
        position = jax.lax.axis_index("data").astype(jnp.float32)
        return jax.lax.psum(position, "data"), jax.lax.pmean(position, "data")

    run = jax.jit(jax.shard_map(both, mesh=mesh, in_specs=(), out_specs=P()))
    total, mean = jax.device_get(run())
    return float(total), float(mean)


@defined(
    "05.2",
    "Tell varying from invariant",
    kind="predict",
    trains=("tell *varying* values from *invariant* ones", "explain why a gradient with respect"),
    form=named(
        {
            "w * x": choice("varying", "invariant"),
            "psum": choice("varying", "invariant"),
            "gradient": choice("varying", "invariant"),
            "gradient of a copy": choice("varying", "invariant"),
            "added up by": choice("loss", "grad", "pmean"),
        }
    ),
    hints=(
        "Ask of each value: could two devices hold different numbers there?",
        "`print(jax.typeof(value))` inside `shard_map` shows the type, as in section 1. For the last "
        "line: if nothing had been added up before `pmean`, its result would have been right.",
    ),
    right="The transpose of turning one value into many copies is a sum over the copies. It is "
    "part of differentiating, so it comes before any line of yours can average.",
)
def kinds(answer: dict[str, str], mesh: Mesh) -> Iterator[tuple[Any, str]]:
    """Read the types that JAX gives these values inside `shard_map`."""
    truth = _kinds(mesh)
    for name, message in (
        ("w * x", "One factor of `w * x` is this device's own. And the product?"),
        (
            "psum",
            "A `psum` gives its total to every device. Can two of them hold different totals?",
        ),
        (
            "gradient",
            "If the gradient with respect to `w` were each device's own, the `pmean` of section 3 "
            "would have averaged it, and no factor would be left.",
        ),
        (
            "gradient of a copy",
            "With respect to a copy of its own, a device gets the gradient of its own share. "
            "Nothing has been exchanged for that.",
        ),
    ):
        yield answer[name] != truth[name], message
    yield (
        answer["added up by"] == "pmean",
        "A `pmean` divides by the number of devices, too: had it alone added up, all were well.",
    )
    yield (
        answer["added up by"] == "loss",
        "Each device computes the loss of its own share; on the way forward nothing is exchanged.",
    )


def _kinds(mesh: Mesh) -> dict[str, str]:
    found = {}

    def look(w: jax.Array, x: jax.Array) -> jax.Array:
        copy = jax.lax.pcast(w, "data", to="varying")
        gradient = jax.grad(lambda w: (w * x).sum())
        values = {
            "w * x": w * x,
            "psum": jax.lax.psum(w * x, "data"),
            "gradient": gradient(w),
            "gradient of a copy": gradient(copy),
        }
        for name, value in values.items():
            found[name] = "varying" if "V:data" in str(jax.typeof(value)) else "invariant"
        return x

    looked = jax.shard_map(look, mesh=mesh, in_specs=(P(), P("data")), out_specs=P("data"))
    jax.eval_shape(looked, jnp.float32(1), jax.ShapeDtypeStruct((mesh.size,), jnp.float32))
    return found
