"""Data-parallel training over many processes: each loads its own shard, all take the same step."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
import optax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from course_utils.fashion_mnist import FashionMNIST
from course_utils.hlo import collectives
from course_utils.models import mlp
from course_utils.models.shard_map_step import make_shard_map_step
from course_utils.processes import saving

SIZES = (784, 256, 128, 10)
MOMENTUM = 0.9


@dataclass(frozen=True)
class Run:
    """What to train: steps to have behind us at the end, examples in a global batch, and so on."""

    steps: int
    batch_size: int
    learning_rate: float
    log_every: int
    checkpoint: Path | None
    checkpoint_every: int


@functools.cache
def shuffled(epoch: int, examples: int) -> np.ndarray:
    """The order of the examples in an epoch: the same in every process, without a word between."""
    return np.random.default_rng(epoch).permutation(examples)


def own_rows(step: int, examples: int, batch_size: int, process: int, count: int) -> np.ndarray:
    """The examples of global batch `step` that belong to one of `count` processes.

    Processes hold consecutive pieces, so the global batch is the same for any `count` that
    divides it.
    """
    epoch, number = divmod(step, examples // batch_size)
    batch = shuffled(epoch, examples)[number * batch_size : (number + 1) * batch_size]
    return batch.reshape(count, -1)[process]


def global_batch(mesh: Mesh, images: np.ndarray, labels: np.ndarray) -> Any:
    """One array over all processes from what each has: no example leaves its process.

    Args:
        mesh: all devices on the axis 'data'.
        images: uint8 (n, 28, 28), this process's share.
        labels: uint8 (n,).

    Returns:
        float32 (n * processes, 784) and int32 (n * processes,), split over 'data'.
    """
    rows, targets = mlp.to_model_input(images), labels.astype(np.int32)
    put = jax.make_array_from_process_local_data
    return (
        put(NamedSharding(mesh, P("data", None)), rows),
        put(NamedSharding(mesh, P("data")), targets),
    )


def replicated(mesh: Mesh, state: Any) -> Any:
    """The same NumPy arrays of every process as arrays that are whole on every device."""
    put, everywhere = jax.make_array_from_process_local_data, NamedSharding(mesh, P())
    return jax.tree.map(lambda leaf: put(everywhere, leaf), state)


def train(mesh: Mesh, data: FashionMNIST, run: Run, log: Callable[[str], None]) -> Any:
    """Train the network of lesson 01 by SGD with momentum; returns its parameters, replicated.

    Every process calls this. Goes on from `run.checkpoint` if that exists.

    Args:
        mesh: all devices of all processes on one axis, 'data', which divides the batch.
        data: each process touches its own rows only; the files are mapped, not read.
        run: what to do.
        log: takes a line; give the other processes than the first one that is silent.
    """
    optimizer = optax.sgd(run.learning_rate, MOMENTUM)
    step = make_shard_map_step(mlp.loss_and_accuracy, optimizer, mesh)
    params = mlp.init_params(jax.random.key(1), SIZES)
    examples = len(data.train_images)
    settings = {"batch size": run.batch_size, "rate": run.learning_rate, "examples": examples}
    fresh = params, optimizer.init(params)
    first, state = saving.resume(run.checkpoint, fresh, settings)
    log(f"training from step {first} to {run.steps}")
    state = replicated(mesh, state)
    process, count = jax.process_index(), jax.process_count()
    for number in range(first, run.steps):
        rows = own_rows(number, examples, run.batch_size, process, count)
        batch = global_batch(mesh, data.train_images[rows], data.train_labels[rows])
        if number == first:
            step = step.lower(state, batch).compile()
            log(_communication(step))
        state, metrics = step(state, batch)
        _after(number + 1, run, state, metrics, settings, log)
    return state[0]


def _after(
    done: int, run: Run, state: Any, metrics: Any, settings: dict, log: Callable[[str], None]
) -> None:
    last = done == run.steps
    if last or done % run.log_every == 0:
        log(f"step {done}: loss {metrics['loss']:.4f}, accuracy {metrics['accuracy']:.3f}")
    if run.checkpoint and (last or done % run.checkpoint_every == 0):
        if jax.process_index() == 0:
            saving.save(run.checkpoint, done, state, settings)
        log(f"step {done}: saved")
    if done % 5 == 0:  # more steps in flight could starve simulated devices
        jax.block_until_ready(state)


def _communication(compiled: Any) -> str:
    found = [
        f"{each.executions} {each.kind} of {each.bytes / 1e6:.2f} MB over {each.group_size} devices"
        for each in collectives(compiled)
    ]
    return f"each step communicates: {'; '.join(found) or 'nothing'}"
