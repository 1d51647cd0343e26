"""Exercise 07.1: compare with the vectors of every device."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import numpy as np

from course_utils.exercises.definition import defined
from course_utils.exercises.forms import function

VECTORS, LENGTH = 4, 3


@defined(
    "07.1",
    "Compare with the vectors of every device",
    kind="fill the gap",
    trains=("map a function with `vmap`", "say what `psum`, `pmean`"),
    form=function("mine"),
    hints=(
        "Which of the five collectives gives everyone all rows? Its result has one axis more than "
        "`mine`: look at its shape, and make one stack of vectors of it.",
        "One dot product has two vectors. To take one of mine with each of all, map over the second "
        "argument only; then map that over the first argument only. `None` shares an argument.",
    ),
    right="Contrastive training compares every example with those of all devices just like this: "
    "the collective brings the rows, the two maps make the table, and the row is your own.",
)
def similarities(mine_to_all: Callable, devices: Sequence[jax.Device]) -> Iterator[tuple[Any, str]]:
    """Run the learner's function by `pmap` on random vectors; NumPy says what must come out."""
    n = len(devices)
    vectors = np.random.default_rng(7).normal(size=(n, VECTORS, LENGTH)).astype(np.float32)
    result = jax.pmap(mine_to_all, axis_name="data", devices=devices)(vectors)
    yield result is None, "Your function returns nothing: return the table of dot products."
    yield not hasattr(result, "shape"), "Return one array, the table of dot products."
    found = np.asarray(jax.block_until_ready(result))
    own = np.einsum("dik,djk->dij", vectors, vectors)
    wanted = np.einsum("dik,ejk->diej", vectors, vectors)
    flat = wanted.reshape(n, VECTORS, -1)
    summed = np.einsum("dik,jk->dij", vectors, vectors.sum(0))
    for mistaken, message in (
        (own, "Each device has compared its own vectors with its own. Where are the others'?"),
        (summed, "Adding vectors up mixes them. Bring them over as they are."),
        (wanted, "The numbers are right. The axis that the collective has added is still there."),
        (wanted.swapaxes(2, 3), "The axis that the collective has added stands last now."),
        (flat.swapaxes(1, 2), "Rows and columns are the wrong way round: a row is one of `mine`."),
        (_paired(vectors), "Only the vectors in the same place are compared, pair by pair."),
    ):
        yield not _close(found, flat) and _close(found, mistaken), message
    columns = VECTORS * n
    yield (
        found.shape[1:] != flat.shape[1:],
        f"With {VECTORS} vectors on each of {n} devices, a device's table has {VECTORS} rows and "
        f"{columns} columns. Yours has the shape {found.shape[1:]}.",
    )
    yield (
        not _close(found, flat) and _close(np.sort(found), np.sort(flat)),
        "The numbers are right, the order of the columns isn't: first all vectors of device 0, then "
        "those of device 1, on every device.",
    )
    yield not _close(found, flat), "The shape is right, the numbers aren't those dot products."


def _paired(vectors: np.ndarray) -> np.ndarray:
    """Dot products of the vectors that stand in the same place, own and others'."""
    return np.einsum("dik,eik->die", vectors, vectors)


def _close(a: np.ndarray, b: np.ndarray) -> bool:
    # TF32 on a GPU rounds factors at 1e-3, and these vectors have a length of a few units.
    return a.shape == b.shape and bool(np.allclose(a, b, rtol=1e-2, atol=2e-2))
