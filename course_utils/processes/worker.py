"""One process of a run: the sums of everyone's vectors, then data-parallel training.

The same program is launched by `course_utils.processes` on one machine and by a Kubernetes
Indexed Job on many; `joining` says what its environment must hold.
"""

import argparse
import contextlib
import io
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from course_utils import fashion_mnist
from course_utils.processes.joining import join, run_or_end, say
from course_utils.processes.training import Run, train


def sums(mesh: Mesh, pairs: int) -> tuple[float, float]:
    """The sum of the dot products of this process's own pairs of 3-vectors, and of everyone's.

    The pairs are normal, from key 42 + 10 * process index.
    """
    key_x, key_y = jax.random.split(jax.random.key(42 + 10 * jax.process_index()))
    x, y = jax.random.normal(key_x, (pairs, 3)), jax.random.normal(key_y, (pairs, 3))
    dots = jax.vmap(jnp.dot)(x, y)

    def total(own: jax.Array) -> jax.Array:
        return jax.lax.psum(own.sum(), "data")

    everyones = jax.jit(jax.shard_map(total, mesh=mesh, in_specs=P("data"), out_specs=P()))
    split = NamedSharding(mesh, P("data"))
    together = jax.make_array_from_process_local_data(split, np.asarray(dots))
    return float(dots.sum()), float(everyones(together))


def work(options: argparse.Namespace) -> None:
    """Join, add up, train, and write the parameters."""
    join()
    index, count = jax.process_index(), jax.process_count()
    devices = jax.devices()
    say(f"process {index} of {count}: {jax.local_device_count()} of {len(devices)} devices")
    mesh = Mesh(devices, "data")
    if options.batch % len(devices):
        raise ValueError(f"{len(devices)} devices do not divide a batch of {options.batch}.")
    own, everyones = sums(mesh, options.pairs)
    say(f"process {index} of {count}: local sum {own!r}, global sum {everyones!r}")
    if options.steps:
        first = index == 0
        with contextlib.nullcontext() if first else contextlib.redirect_stderr(io.StringIO()):
            data = fashion_mnist.load()
        run = Run(
            steps=options.steps,
            batch_size=options.batch,
            learning_rate=options.learning_rate,
            log_every=options.log_every,
            checkpoint=options.checkpoint,
            checkpoint_every=options.checkpoint_every,
        )
        params = train(mesh, data, run, log=say if first else _say_nothing)
        if options.output and first:
            np.savez(options.output, *jax.device_get(jax.tree.leaves(params)))
    jax.distributed.shutdown()  # waits for the others


def _say_nothing(line: str) -> None:
    pass


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """The options; those of all processes are the same."""
    parser = argparse.ArgumentParser("python -m course_utils.processes.worker")
    add = parser.add_argument
    add("--pairs", type=int, default=1_000_000, help="pairs of vectors of each process")
    add("--steps", type=int, default=100, help="training steps in all; 0: no training")
    add("--batch", type=int, default=512, help="examples of a step, over all processes")
    add("--learning-rate", type=float, default=0.1)
    add("--log-every", type=int, default=25, metavar="STEPS")
    add("--checkpoint", type=Path, metavar="FILE", help="go on from it, and keep it up to date")
    add("--checkpoint-every", type=int, default=25, metavar="STEPS")
    add("--output", type=Path, metavar="FILE", help="write the parameters there, .npz")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    options = parse()
    run_or_end(lambda: work(options))
