"""Exercises 04.1 and 04.2: when data parallelism pays, and who holds which piece."""

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from course_utils.exercises.definition import defined
from course_utils.exercises.forms import choice, named, shape, whole_number
from course_utils.flops import matmul_flops
from course_utils.models.shared_block import init_params, make_loss

_MORE = choice("more", "less", "same")


@defined(
    "04.1",
    "Say what makes data parallelism pay",
    kind="predict",
    trains=("name the five steps of data parallelism",),
    form=named(
        {
            "twice the repetitions": _MORE,
            "twice the images per device": _MORE,
            "twice the devices, each with as many images": _MORE,
            "twice the devices, the same global batch": _MORE,
            "parameters on each device": _MORE,
        }
    ),
    hints=(
        "Go through the five steps: which of them does a device for itself, and how large is what it "
        "sends in step 4? A gradient has the size of the parameters.",
        "Take one line at a time: what happens to the images that one device works on, to the work "
        "for one image, and to the number of parameters?",
    ),
    right="Step 4 costs the same whatever the batch. More devices never change what one device "
    "must hold, and shared among more of them, a fixed batch leaves each with too little to do.",
)
def pays(answer: dict[str, str], width: int, repeats: int, rows: int) -> Iterator[tuple[Any, str]]:
    """Count the operations of a device's gradients before and after each change."""
    base, many = _work_per_byte(width, repeats, 2 * rows), 4 * rows
    truth = {
        "twice the repetitions": _compared(_work_per_byte(width, 2 * repeats, 2 * rows), base),
        "twice the images per device": _compared(_work_per_byte(width, repeats, many), base),
        "twice the devices, each with as many images": "same",
        "twice the devices, the same global batch": _compared(
            _work_per_byte(width, repeats, rows), base
        ),
        "parameters on each device": "same",
    }
    for name, message in (
        (
            "twice the repetitions",
            "The block is applied more often, but it is one block: what becomes of the parameters?",
        ),
        (
            "twice the images per device",
            "Each image is work. Does the gradient grow with the number of images?",
        ),
        (
            "twice the devices, each with as many images",
            "Look at one device: has it more images than before, or larger gradients?",
        ),
        (
            "twice the devices, the same global batch",
            "The same batch is shared among twice as many. What is left for one of them to do?",
        ),
        (
            "parameters on each device",
            "The first of the five steps says what of the parameters each device gets.",
        ),
    ):
        yield answer[name] != truth[name], message


def _work_per_byte(width: int, repeats: int, rows: int) -> float:
    """Operations of the gradients of `rows` images, for each byte of the gradients."""
    params = jax.eval_shape(lambda: init_params(jax.random.key(0), width))
    batch = (
        jax.ShapeDtypeStruct((rows, 784), jnp.float32),
        jax.ShapeDtypeStruct((rows,), jnp.int32),
    )
    gradients = jax.grad(make_loss(repeats, 0.1), has_aux=True)
    sent = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(params))
    return matmul_flops(gradients, params, batch) / sent


def _compared(new: float, old: float) -> str:
    return "more" if new > old else "less" if new < old else "same"


@defined(
    "04.2",
    "Predict the piece on each device",
    kind="predict",
    trains=("build a mesh, and predict which device",),
    form=named(
        {
            "stack": shape(),
            "labels": shape(),
            "weights": shape(),
            "first row of the last": whole_number(),
            "one row more": choice("accepted", "refused"),
        }
    ),
    hints=(
        "Write the shape and the spec below each other. An axis whose entry is `data` is divided by "
        "the number of devices; axes without an entry stay whole.",
        "Devices hold consecutive rows, counted from 0. How many rows are held by all the devices "
        "before the last one?",
    ),
    right="Whatever a spec names must divide; all else is whole everywhere. That is all there is to "
    "predict a placement, with any number of axes.",
)
def pieces(answer: dict[str, Any], mesh: Mesh, rows: int) -> Iterator[tuple[Any, str]]:
    """Put such arrays on the mesh and look."""
    n, wholes = mesh.size, {"stack": (5, rows, 3), "labels": (rows,), "weights": (3, rows)}
    specs = {"stack": P(None, "data"), "labels": P("data"), "weights": P()}
    placed = {k: jax.device_put(np.zeros(wholes[k]), _on(mesh, specs[k])) for k in specs}
    yield (
        len(answer["stack"]) == 3 and answer["stack"][0] != wholes["stack"][0],
        "Under 'stack', the first axis is cut, but its entry of the spec is `None`.",
    )
    for name in ("stack", "labels"):
        seen, truth = answer[name], placed[name].addressable_shards[0].data.shape
        yield (
            seen != truth and seen == wholes[name],
            f"Under {name!r} stands the global shape. Its spec names `data`.",
        )
        yield (
            len(seen) != len(truth),
            f"Under {name!r} the number of axes has changed. A device's piece has as many as the "
            "whole.",
        )
        yield seen != truth, f"Under {name!r}: which axis is cut, and into how many pieces?"
    yield answer["weights"] != wholes["weights"], "`P()` names no axis of the mesh: what is cut?"
    last = max(_first_row(shard) for shard in placed["labels"].addressable_shards)
    first = answer["first row of the last"]
    yield n > 1 and first == rows - 1, "That is its last row, not its first."
    yield first != last == first - 1, "Rows are counted from 0, as indices are."
    yield n > 1 and first == rows, "There is no such row: rows are counted from 0."
    yield first != last, "How many devices come before the last, and how many rows has each?"
    yield (
        answer["one row more"] != _one_more(mesh, rows),
        "Can that many rows be divided by this number of devices, all pieces alike?",
    )


def _on(mesh: Mesh, spec: P) -> NamedSharding:
    return NamedSharding(mesh, spec)


def _first_row(shard: Any) -> int:
    return shard.index[0].start or 0


def _one_more(mesh: Mesh, rows: int) -> str:
    try:
        jax.device_put(np.zeros(rows + 1), _on(mesh, P("data")))
    except ValueError:
        return "refused"
    return "accepted"
