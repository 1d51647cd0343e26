"""Exercise 09.4: what a dead process, a slow one and an incomplete checkpoint cost."""

import contextlib
import functools
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh

from course_utils.exercises.definition import defined
from course_utils.exercises.forms import choice, named, number, whole_number

BATCH, RATE = 64, 0.1  # of a small run, cut and resumed to find out where it goes on


@defined(
    "09.4",
    "Say what a failure costs",
    kind="predict",
    trains=("predict what happens when a process dies or is slow",),
    form=named(
        {
            "goes on after": whole_number(),
            "computed twice": whole_number(),
            "seconds": number("seconds"),
            "parameters only": choice("same", "other"),
            "taking turns": number("milliseconds"),
        }
    ),
    hints=(
        "Which steps are in the last checkpoint? What comes before the first of the lost steps is "
        "computed again: how long do the others live on without the dead one?",
        "SGD with momentum remembers earlier gradients: where is that kept? And a step ends when "
        "the slowest process has come: who is the slowest in each of the steps?",
    ),
    right="A failure costs the wait and the steps since the last checkpoint. A launcher that "
    "watches saves the wait, more checkpoints save steps; and a checkpoint is the whole state.",
)
def failure_costs(
    answer: dict[str, Any],
    steps: int,
    every: int,
    died_after: int,
    step_seconds: float,
    heartbeat: float,
    waited: float,
    turns_ms: float,
) -> Iterator[tuple[bool, str]]:
    """Cut a run and resume it, here and now; the wait and the turns were measured by the lesson.

    `waited` is a survivor's wait as a share of its heartbeat timeout.
    """
    resumed, same = _cut_and_resume(steps, every, died_after)
    yield (
        answer["goes on after"] == died_after,
        "That step was in no file yet. Where was the last checkpoint?",
    )
    yield answer["goes on after"] == 0, "It needn't begin anew: the last checkpoint is whole."
    yield (
        answer["goes on after"] != resumed,
        f"A checkpoint is written after every {every} steps. Which is the last that there was time for?",
    )
    yield (
        answer["computed twice"] == every != died_after - resumed,
        "So many it would be if the process had died right before a checkpoint.",
    )
    yield (
        answer["computed twice"] != died_after - resumed,
        "Twice: those that were done already, and come after the last checkpoint.",
    )
    again = (died_after - resumed) * step_seconds
    yield from _seconds(answer["seconds"], again, waited, heartbeat)
    yield (
        answer["parameters only"] != ("same" if same else "other"),
        "The optimizer would start from a momentum of zero, where the run that wasn't cut has one.",
    )
    turns = answer["taking turns"]
    yield (
        abs(turns - turns_ms / 2) < 0.2 * turns_ms,
        "On average each sleeps half of the time. But do they sleep at the same time?",
    )
    yield (
        abs(turns - 2 * turns_ms) < 0.2 * turns_ms,
        "In one step only one of them sleeps.",
    )
    yield abs(turns - turns_ms) > 0.3 * turns_ms, "Each step waits for the one that sleeps in it."


def _seconds(
    given: float, again: float, waited: float, heartbeat: float
) -> Iterator[tuple[bool, str]]:
    """Judge an estimate: the wait differs from machine to machine, and with the timeout's length."""
    least, most = (0.6 * min(waited, 1) * heartbeat, 1.5 * max(waited, 1) * heartbeat)
    right = again + least <= given <= again + most
    yield (
        abs(given - again) < 0.1 * again,
        "That is the time of the steps alone. When does somebody learn that the run has ended?",
    )
    yield (
        not right and least <= given <= most,
        "So long the survivors wait. Then the lost steps are still to be computed.",
    )
    yield (
        not right and least <= given / 1000 - again <= most,
        "These look like milliseconds.",
    )
    yield not right, "First the survivors wait, then the lost steps are computed again."


@functools.cache
def _cut_and_resume(steps: int, every: int, died_after: int) -> tuple[int, bool]:
    """Where a run goes on that was cut; and whether its parameters alone would have been enough."""
    with tempfile.TemporaryDirectory() as folder:
        whole, alone = Path(folder) / "whole.npz", Path(folder) / "alone.npz"
        with contextlib.suppress(InterruptedError):
            _train(steps, every, whole, until=died_after)
        with np.load(whole) as file:
            saved = dict(file)
        wanted, _ = _train(steps, every, None)
        leaves = len(wanted)  # the first of the saved arrays; then comes the optimizer's state
        gone = {f"arr_{i}": np.zeros_like(saved[f"arr_{i}"]) for i in range(leaves, 2 * leaves)}
        np.savez(alone, **saved | gone)
        _, first = _train(steps, every, whole)
        found, _ = _train(steps, every, alone)
    return first, all(np.array_equal(a, b) for a, b in zip(found, wanted, strict=True))


def _train(
    steps: int, every: int, checkpoint: Path | None, until: int | None = None
) -> tuple[list[np.ndarray], int]:
    """The worker's training, in this process; its parameters, and the step that it went on after.

    With `until` it is cut when that step is done: InterruptedError.
    """
    from course_utils.processes.training import Run, train

    lines: list[str] = []

    def log(line: str) -> None:
        lines.append(line)
        if until is not None and line.startswith(f"step {until}: loss"):
            raise InterruptedError

    random = np.random.default_rng(0)
    images = random.integers(0, 256, (4 * BATCH, 28, 28), np.uint8)
    labels = random.integers(0, 10, 4 * BATCH, np.uint8)
    data = SimpleNamespace(train_images=images, train_labels=labels)
    run = Run(steps, BATCH, RATE, 1, checkpoint, every)
    params = train(Mesh(jax.devices()[:1], "data"), data, run, log)
    first = int(lines[0].removeprefix("training from step ").split()[0])
    return [np.asarray(leaf) for leaf in jax.tree.leaves(jax.device_get(params))], first
