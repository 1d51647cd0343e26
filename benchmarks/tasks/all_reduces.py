"""One data-parallel step over two processes, launched anew each round, with what it communicates.

As a task it launches `python -m benchmarks.tasks.all_reduces WAY`, once for each process; there the first
process says in one line what was found. Width and repetitions of the shared block are the lab's,
and so are the all-reduces; the batch is smaller, to suit a CPU. gloo carries them over loopback.
"""

import json
import sys
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import optax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from course_utils import timing
from course_utils.hlo import collectives, totals
from course_utils.models import mlp, shared_block
from course_utils.models.shard_map_step import make_shard_map_step
from course_utils.processes import joining, launch
from course_utils.processes.training import global_batch, replicated

PROCESSES = 2
WIDTH, REPEATS, MIX = 1024, 128, 0.1
BATCH, LEARNING_RATE, WEIGHT_DECAY = 16, 3e-4, 1e-4  # BATCH: examples of a process
COUNT, MEGABYTES, TIME = "all-reduces a step", "MB a step", "ms per step"
MARK = "all-reduces found: "
Step = Callable[[Any, Any], tuple[Any, Any]]


class Across:
    """A step across processes, the way that is named."""

    def __init__(self, way: str, steps: str, width: str = "", repeats: str = "") -> None:
        self._arguments = [way, steps, width or str(WIDTH), repeats or str(REPEATS)]

    def round(self) -> dict[str, float]:
        lines: list[str] = []
        argv = ["-m", "benchmarks.tasks.all_reduces", *self._arguments]
        launch(argv, PROCESSES, 1, timeout=150, echo=lines.append)
        found = [line.partition(MARK)[2] for line in lines if MARK in line]
        return json.loads(found[0])


def measure(way: str, steps: int, width: int, repeats: int) -> None:
    """What each of the processes does."""
    joining.join()
    mesh = Mesh(jax.devices(), "data")
    optimizer = optax.adamw(LEARNING_RATE, weight_decay=WEIGHT_DECAY)
    params = shared_block.init_params(jax.random.key(1), width)
    state = replicated(mesh, jax.device_get((params, optimizer.init(params))))
    batch = noise(mesh)
    make = {"jit": sharded_jit, "shard_map": make_shard_map_step, "lab": lab_shard_map}[way]
    step = make(shared_block.make_loss(repeats, MIX), optimizer, mesh)
    compiled = step.lower(state, batch).compile()
    sent = totals(collectives(compiled))
    timed = timing.measure(compiled, state, [batch], warmup=2, steps=steps, repeats=1)
    if jax.process_index() == 0:
        found = {COUNT: sent.executions, MEGABYTES: sent.bytes / 1e6, TIME: timed.ms_per_step}
        print(MARK + json.dumps(found), flush=True)
    jax.distributed.shutdown()


def noise(mesh: Mesh) -> Any:
    """A global batch of which this process makes its share."""
    random = np.random.default_rng(jax.process_index())
    images = random.integers(0, 256, (BATCH, 28, 28), np.uint8)
    return global_batch(mesh, images, random.integers(0, 10, BATCH, np.uint8))


def sharded_jit(loss: Any, optimizer: optax.GradientTransformation, mesh: Mesh) -> Step:
    """Lesson 04's: one device's step under `jit`, on sharded arrays."""
    # jit may choose another placement for its results; the next step wants the state as it was.
    return jax.jit(mlp.make_train_step(loss, optimizer), out_shardings=NamedSharding(mesh, P()))


def lab_shard_map(loss: Any, optimizer: optax.GradientTransformation, mesh: Mesh) -> Step:
    """The source lab's: it averages gradients that are summed already (wrong by their number)."""

    def local_step(state: Any, batch: Any) -> tuple[Any, Any]:
        params, opt_state = state
        (value, accuracy), grads = jax.value_and_grad(loss, has_aux=True)(params, batch)
        grads, value, accuracy = jax.lax.pmean((grads, value, accuracy), "data")
        updates, opt_state = optimizer.update(grads, opt_state, params)
        return (optax.apply_updates(params, updates), opt_state), (value, accuracy)

    specs = (P(), (P("data", None), P("data")))
    return jax.jit(jax.shard_map(local_step, mesh=mesh, in_specs=specs, out_specs=(P(), P())))


if __name__ == "__main__":
    joining.run_or_end(lambda: measure(sys.argv[1], *map(int, sys.argv[2:])))
