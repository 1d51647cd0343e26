"""Exercise 08.1: who holds what on a mesh of two axes, and what must be sent for it."""

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from course_utils.exercises.definition import defined
from course_utils.exercises.forms import choice, named, shape, whole_number
from course_utils.hlo import collectives, totals

_SENDS = choice("sends", "nothing")
_ROWS, _COLUMNS, _BOTH = P("data", None), P(None, "data"), P("data", "model")


@defined(
    "08.1",
    "Predict pieces, copies and what is sent",
    kind="predict",
    trains=(
        "shard two matrices by rows",
        "predict which placements of a matrix product",
        "build meshes of several shapes",
    ),
    form=named(
        {
            "piece": shape(),
            "copies": whole_number(),
            "row sums": _SENDS,
            "column sums": _SENDS,
            "columns, then rows": _SENDS,
            "columns, then columns": _SENDS,
        }
    ),
    hints=(
        "Ask of each sum: along which axis does it run, and does one device hold all of that axis? A "
        "matrix product is a sum along the columns of its left and the rows of its right factor.",
        "A spec that names one of two mesh axes cuts along it, and repeats along the other. And of X A, "
        "with A split by columns, each device has some of the columns of the result.",
    ),
    right="By columns, then by rows: that is how two layers are divided so that only the result of "
    "both has to be added up. You have just found what tensor parallelism is made of.",
)
def placed(answer: dict[str, Any], mesh: Mesh, size: int) -> Iterator[tuple[Any, str]]:
    """Place such arrays on the mesh; compile the sums and products, and count."""
    data, model = mesh.shape["data"], mesh.shape["model"]
    both = _put(mesh, _BOTH, size).addressable_shards[0].data.shape
    seen = answer["piece"]
    yield seen != both and seen == (size, size), "`piece` is the whole: its spec names two axes."
    yield (
        seen != both and seen in ((size // data, size), (size, size // model)),
        "One axis of the piece is still whole, but its spec has an entry for both.",
    )
    yield (
        seen != both and seen == (size // model, size // data),
        "The two mesh axes are the wrong way round: the first entry is about the rows.",
    )
    yield seen != both, "By how many devices is each axis of that piece divided?"
    copies = _copies(_put(mesh, _ROWS, size))
    given = answer["copies"]
    yield given != copies and given == mesh.size, "Not all devices hold the same rows."
    yield (
        given != copies and given == data,
        "That is the number of different pieces. How many devices hold each of them?",
    )
    yield (
        given != copies,
        "`P('data', None)` says nothing of `model`: what do devices along it hold?",
    )
    truth = {name: _sends(mesh, size, *case) for name, case in _CASES.items()}
    for name, message in _WHY.items():
        # With one piece along `data`, nothing is split, and nothing has to be sent.
        alone = "There is one piece along `data`: whom should it be sent to?"
        yield answer[name] != truth[name], message if data > 1 else f"{name!r}: {alone}"


_CASES: dict[str, tuple[Callable, tuple[P, ...], P]] = {
    "row sums": (lambda x: x.sum(axis=1), (_ROWS,), P("data")),
    "column sums": (lambda x: x.sum(axis=0), (_ROWS,), P()),
    "columns, then rows": (lambda x, a, b: x @ a @ b, (P(), _COLUMNS, _ROWS), P()),
    "columns, then columns": (lambda x, a, b: x @ a @ b, (P(), _COLUMNS, _COLUMNS), _COLUMNS),
}
_WHY = {
    "row sums": "The sum of a row needs that row. Who holds it?",
    "column sums": "The sum of a column needs an entry of every row, and the rows are divided.",
    "columns, then rows": "After the first product each device has some columns of it, and the rows of "
    "the other matrix that go with them. Is what that gives complete?",
    "columns, then columns": "For its columns of the result, a device needs all of the first product. "
    "It has some columns of that.",
}


def _put(mesh: Mesh, spec: P, size: int) -> jax.Array:
    return jax.device_put(np.zeros((size, size), np.float32), NamedSharding(mesh, spec))


def _copies(array: jax.Array) -> int:
    """How many devices hold what the first one holds."""
    indices = [shard.index for shard in array.addressable_shards]
    return indices.count(indices[0])


def _sends(mesh: Mesh, size: int, function: Callable, specs: tuple[P, ...], result: P) -> str:
    arrays = [
        jax.ShapeDtypeStruct((size, size), jnp.float32, sharding=NamedSharding(mesh, spec))
        for spec in specs
    ]
    program = jax.jit(function, out_shardings=NamedSharding(mesh, result)).lower(*arrays).compile()
    return "sends" if totals(collectives(program)).bytes else "nothing"
