"""Exercises 11.4 and 11.5: numbers, and rows, that belong to examples and not to devices."""

from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

from course_utils.equivalence import Report, example_keys
from course_utils.exercises.definition import defined
from course_utils.exercises.forms import function
from course_utils.exercises.lesson_11_spread import ONE_DEVICE

SHAPE = (5, 64)  # images and pixels of one device
FEW = 6  # batches, enough for rows that come twice by chance


@defined(
    "11.4",
    "Find out what the devices' random pixels have in common",
    kind="find the fault",
    trains=("give each example its own random numbers", "read a report, name the cause"),
    form=function("key", "shape"),
    hints=(
        "Every device calls the function with the same key and the same shape. What does it get?",
        "Piece 5 had the same trouble with hidden units. What must a key know, so that it doesn't "
        "matter on which device an image lies?",
    ),
    right="The draw belongs to the image now. Move it to another device, or to one device with all "
    "others, and it loses the same pixels.",
)
def pixels(
    answer: Callable, prove: Callable[[Callable], Report], mesh: Mesh
) -> Iterator[tuple[Any, str]]:
    """Draw on the mesh, and compare the devices with each other and with one device."""
    yield mesh.size < 2, ONE_DEVICE
    rows, columns = SHAPE
    drawn = _drawn(answer, mesh)
    yield drawn is None, "Your function returns nothing: return which pixels stay."
    expected = (mesh.size * rows, columns)
    yield (
        drawn.shape != expected or drawn.dtype != bool,
        f"It has to return True or False for each pixel, in the shape that it is given: here bool "
        f"{SHAPE} on each device. Yours is {drawn.dtype} {(drawn.shape[0] // mesh.size, *drawn.shape[1:])}.",
    )
    shares = drawn.reshape(mesh.size, rows, columns)
    yield (
        bool((drawn == drawn[:, :1]).all()),
        "All pixels of an image stay together, or go together.",
    )
    yield (
        abs(drawn.mean() - 0.9) > 0.05,
        f"Of the pixels {drawn.mean():.0%} stay, where 90 % should.",
    )
    same = bool((shares == shares[0]).all())
    keys = example_keys(jax.random.key(0), mesh.size * rows)
    truth = np.asarray(jax.vmap(lambda k: jax.random.bernoulli(k, 0.9, (columns,)))(keys))
    yield (
        same and bool((shares[0] == truth[:rows]).all()),
        "The images of one device have keys of their own now, but every device begins to count "
        "anew: the first image of each loses the same pixels.",
    )
    yield same, "All devices still lose the same pixels."
    report = prove(answer)
    yield (
        not report.ok,
        "No two devices lose the same pixels now. But what an image loses still depends on how many "
        "devices there are, so one device can't repeat it.",
    )


def _drawn(answer: Callable, mesh: Mesh) -> np.ndarray | None:
    """What the devices draw, one after the other; None if nothing is returned."""
    returned = []

    def local(key: jax.Array) -> jax.Array:
        value = answer(key, SHAPE)
        returned.append(value)
        # Varying or not: taken as the device's own, so that all can be compared.
        return jax.numpy.ones(SHAPE) if value is None else value

    mapped = jax.shard_map(local, mesh=mesh, in_specs=P(), out_specs=P("data"), check_vma=False)
    drawn = np.asarray(jax.device_get(jax.jit(mapped)(jax.random.key(0))))
    return None if returned[0] is None else drawn


@defined(
    "11.5",
    "Find out which rows the processes load",
    kind="find the fault",
    trains=("read a report, name the cause", "make a step that you haven't seen"),
    form=function("epoch", "number", "process", "count"),
    hints=(
        "Write down the rows that two processes load of the same batch. Can one row be in both? Can "
        "one be in neither?",
        "A seed is an agreement that costs no message. About what do the processes have to agree, and "
        "in what may they differ?",
    ),
    right="All agree on one order, by a seed that all know, and differ only in the part of it that "
    "they load. Each example is used once in an epoch, whatever the number of processes.",
)
def rows(
    answer: Callable, prove: Callable[[Callable], Report], count: int, batches: int
) -> Iterator[tuple[Any, str]]:
    """Load some of the batches as one process and as `count`, and compare; then prove."""
    yield count < 2, ONE_DEVICE
    alone = answer(0, 0, 0, 1)
    yield alone is None, "Your function returns nothing: return the rows of one process."
    parts = [np.asarray(answer(0, 0, process, count)) for process in range(count)]
    alone, together = np.asarray(alone), np.concatenate([part.ravel() for part in parts])
    yield (
        any(part.ndim != 1 or part.dtype.kind not in "iu" for part in parts),
        "Return the rows as one array of whole numbers, the indices of the examples.",
    )
    yield (
        len(together) > len(alone),
        f"The {count} processes load {len(together)} rows together; the batch has {len(alone)}. Each "
        "loads its part of it.",
    )
    yield (
        all(np.array_equal(part, parts[0]) for part in parts),
        "All processes load the same rows, so most of the batch is loaded by none.",
    )
    some = [
        np.ravel(answer(0, number, process, count))
        for number in range(min(batches, FEW))
        for process in range(count)
    ]
    yield (
        len(np.unique(np.concatenate(some))) < sum(map(len, some)),
        "In one epoch, some rows are loaded twice, and so others never: the processes don't "
        "shuffle alike, or their batches overlap.",
    )
    yield (
        set(together) != set(alone),
        f"{count} processes together load other examples than one process does for the same batch: "
        "what is in a batch depends on how many there are.",
    )
    yield (
        np.array_equal(alone, np.asarray(answer(1, 0, 0, 1))),
        "Two epochs have the same order.",
    )
    yield (
        np.array_equal(alone, np.asarray(answer(0, 1, 0, 1))),
        "Two batches of an epoch have the same rows.",
    )
    report = prove(answer)
    yield (
        not report.ok,
        "The processes agree with each other now, but not with the script: its order comes from "
        "`default_rng(epoch)`, and batch `number` is that part of it.",
    )
