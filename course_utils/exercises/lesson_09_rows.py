"""Exercises 09.1 and 09.2: who owns which rows, and what a process sees of a global array."""

import functools
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from course_utils.exercises.definition import defined
from course_utils.exercises.forms import choice, named, shape, whole_number

EXAMPLES, BATCH, COUNTS = 240, 24, (1, 2, 4)
VERDICT = choice("size", "repeats", "count", "right")


@defined(
    "09.1",
    "Find out what each loader does to the global batch",
    kind="find the fault",
    trains=("let each process load its own rows",),
    form=named(dict.fromkeys(("in_turns", "own_seed", "own_share", "own_batch"), VERDICT)),
    hints=(
        "Calculate with small numbers: 8 examples, batches of 4. Which rows has process 0 of two at "
        "step 0, which has process 1, and what has one process alone?",
        "As in section 2: np.concatenate([loader(0, 8, 4, p, count) for p in range(count)]). Compare "
        "the length for each count, then the rows of all steps of an epoch, then the sorted rows of "
        "one step.",
    ),
    right="A loader is right if the global batch doesn't know how many processes there are. None "
    "of the others stops with an error, so it takes such a look to find out.",
)
def loaders(answer: dict[str, str], loaders: Mapping[str, Callable]) -> Iterator[tuple[bool, str]]:
    """Run each loader through an epoch, as one, two and four processes."""
    for name, given in answer.items():
        truth = _verdict(loaders[name])
        if given == truth:
            continue
        yield (
            given == "right",
            f"{name}: two processes together don't hold what one does. Write down an epoch of both.",
        )
        yield (
            given == "size",
            f"{name}: count the rows of one global batch, for one process and for two. They are as "
            "many.",
        )
        yield (
            given == "repeats",
            f"{name}: inside an epoch, no example comes twice.",
        )
        yield (
            truth == "right",
            f"{name}: compare the rows of a global batch once more, but sorted. A mean doesn't "
            "depend on their order.",
        )
        yield True, f"{name}: that is so, but a verdict that stands before it applies, too."


def _verdict(loader: Callable) -> str:
    epochs = [_epoch(loader, count) for count in COUNTS]
    if any(len(batch) != BATCH for batches in epochs for batch in batches):
        return "size"
    if any(len(np.unique(batches)) < np.size(batches) for batches in epochs):
        return "repeats"
    same = all(np.array_equal(np.sort(b), np.sort(epochs[0])) for b in epochs[1:])
    return "right" if same else "count"


def _epoch(loader: Callable, count: int) -> list[np.ndarray]:
    """The global batches of an epoch."""
    return [
        np.concatenate([loader(step, EXAMPLES, BATCH, process, count) for process in range(count)])
        for step in range(EXAMPLES // BATCH)
    ]


@defined(
    "09.2",
    "Predict what the second process sees",
    kind="predict",
    trains=("start one program as many processes", "compute with arrays of which no process"),
    form=named(
        {
            "index": whole_number(),
            "local_devices": whole_number(),
            "devices": whole_number(),
            "split": shape(),
            "piece": shape(),
            "whole": shape(),
            "np.asarray(split)": choice("all rows", "own rows", "an error"),
        }
    ),
    hints=(
        "`split`: the parts of all processes, one below the other, make the global array, and its "
        "rows are spread over all devices of the mesh. `whole`: everyone holds all of it already.",
        "To show an array, a process needs its numbers. Which of them are in its own memory, and "
        "who would have to take part in fetching the others?",
    ),
    right="A global array has the global shape everywhere and its numbers nowhere: what a process "
    "holds is in `array.addressable_shards`. To see all, all must take part in gathering it.",
)
def second_process(
    answer: dict[str, Any], processes: int, devices_per_process: int, rows: int
) -> Iterator[tuple[bool, str]]:
    """Start the processes, and ask the second one."""
    truth = _seen(processes, devices_per_process, rows)
    own = (rows, 784)
    yield answer["index"] == 2 != truth["index"], "Processes are counted from 0, as devices are."
    yield answer["index"] != truth["index"], "`jax.process_index()` tells the processes apart."
    for name in ("local_devices", "devices"):
        yield (
            answer[name] != truth[name] and answer[name] == processes,
            f"{name}: that is the number of processes.",
        )
    yield (
        answer["local_devices"] != truth["local_devices"],
        "`jax.local_devices()` are those that this process can feed itself.",
    )
    yield answer["devices"] != truth["devices"], "`jax.devices()` are those of all processes."
    yield (
        answer["split"] == own != truth["split"],
        "That is one process's part. The array is global: the other process has given one, too.",
    )
    yield answer["split"] != truth["split"], "`split`: only the rows are cut. How many are there?"
    yield (
        answer["piece"] != truth["piece"],
        "The piece on one device: divide the rows of `split` by the devices of the mesh.",
    )
    yield (
        answer["whole"] == truth["split"],
        "`P()` cuts nothing: both processes gave the same whole array, not two parts of one.",
    )
    yield answer["whole"] != truth["whole"], "`whole`: what each process gave is all of it."
    yield (
        answer["np.asarray(split)"] == "all rows",
        "Some of the rows are in another process, which may be on another machine. Nobody asked it "
        "to send them.",
    )
    yield (
        answer["np.asarray(split)"] != truth["np.asarray(split)"],
        "NumPy would get an array of another shape than `split.shape` says. JAX doesn't do that.",
    )


@functools.cache
def _seen(processes: int, devices_per_process: int, rows: int) -> dict[str, Any]:
    """What the last process says of itself, by the names of the answer."""
    from course_utils.processes import launch

    argv = ["-m", "course_utils.exercises.process_view", str(rows)]
    said = launch(argv, processes, devices_per_process, timeout=120, echo=lambda line: None)
    (line,) = [line for line in said[-1].lines if line.startswith("{")]
    facts = json.loads(line)
    return {k: tuple(v) if isinstance(v, list) else v for k, v in facts.items()}
