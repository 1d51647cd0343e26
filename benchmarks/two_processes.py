"""What the place of an all-reduce costs between processes: python benchmarks/two_processes.py.

The same training step of the shared block on the same global batch, over two processes with one
CPU device each, in one run:

- jit:       `jit` on sharded arrays; XLA puts the all-reduce of the block's gradient into the
             backward loop, once per repetition;
- shard_map: gradients of varying parameters, averaged once (course_utils.models.shard_map_step).

Rounds alternate between the two, so that a busy moment of the machine meets both; each compiles
before the clock starts. Width and repetitions are the lab's, and so are the all-reduces; the batch
is smaller, to suit a CPU. On CPU devices gloo carries the gradients over loopback.
"""

import argparse
import os
import statistics
import sys
from pathlib import Path

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

MIX, LEARNING_RATE = 0.1, 3e-4


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--width", type=int, default=1024)
    parser.add_argument("--block-repeats", type=int, default=128)
    parser.add_argument("--per-device-batch", type=int, default=16)
    parser.add_argument("--steps", type=int, default=2, help="steps of a round")
    parser.add_argument("--rounds", type=int, default=5)
    return parser.parse_args()


def inputs(options: argparse.Namespace, mesh: Mesh, optimizer: optax.GradientTransformation):
    """The replicated state and this process's share of a batch of noise."""
    params = shared_block.init_params(jax.random.key(1), options.width)
    state = replicated(mesh, jax.device_get((params, optimizer.init(params))))
    noise = np.random.default_rng(jax.process_index())
    images = noise.integers(0, 256, (options.per_device_batch, 28, 28), np.uint8)
    labels = noise.integers(0, 10, options.per_device_batch, np.uint8)
    return state, global_batch(mesh, images, labels)


def compiled_steps(options: argparse.Namespace, mesh: Mesh, optimizer, state, batch) -> dict:
    loss = shared_block.make_loss(options.block_repeats, MIX)
    steps = {
        "jit": mlp.make_train_step(loss, optimizer),
        "shard_map": make_shard_map_step(loss, optimizer, mesh),
    }
    everywhere = NamedSharding(mesh, P())
    # jit may choose another placement for its results; the next step wants the state as it was.
    steps["jit"] = jax.jit(steps["jit"], out_shardings=everywhere)
    return {name: step.lower(state, batch).compile() for name, step in steps.items()}


def measure(options: argparse.Namespace) -> None:
    joining.join()
    mesh = Mesh(jax.devices(), "data")
    optimizer = optax.adamw(LEARNING_RATE, weight_decay=1e-4)
    state, batch = inputs(options, mesh, optimizer)
    steps = compiled_steps(options, mesh, optimizer, state, batch)
    rounds: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(options.rounds):
        for name, step in steps.items():
            timed = timing.measure(step, state, [batch], warmup=1, steps=options.steps, repeats=1)
            rounds[name].append(timed.ms_per_step)
    if jax.process_index() == 0:
        report(options, steps, rounds)
    jax.distributed.shutdown()


def report(options: argparse.Namespace, steps: dict, rounds: dict[str, list[float]]) -> None:
    params = jax.eval_shape(lambda: shared_block.init_params(jax.random.key(1), options.width))
    gradient = sum(leaf.size * 4 for leaf in jax.tree.leaves(params)) / 1e6
    print(
        f"{options.processes} processes, width {options.width}, {options.block_repeats} "
        f"repetitions, {options.per_device_batch} examples per process, {gradient:.2f} MB of "
        f"gradients; medians of {options.rounds} rounds"
    )
    print(f"{'':12}{'median ms':>12}{'min - max ms':>20}{'all-reduces':>14}{'MB a step':>12}")
    for name, times in rounds.items():
        sent = totals(collectives(steps[name]))
        spread = f"{min(times):.1f} - {max(times):.1f}"
        print(
            f"{name:12}{statistics.median(times):12.1f}{spread:>20}{sent.executions:14}"
            f"{sent.bytes / 1e6:12.2f}"
        )
    ratio = statistics.median(rounds["jit"]) / statistics.median(rounds["shard_map"])
    print(f"shard_map is {ratio:.2f} times as fast as jit")


def main() -> None:
    options = parse()
    if "JOB_COMPLETION_INDEX" in os.environ:
        joining.run_or_end(lambda: measure(options))
    else:
        here = str(Path(__file__).resolve())
        launch([here, *sys.argv[1:]], options.processes, 1, timeout=600)


if __name__ == "__main__":
    main()
