"""One process of a run: the sums of everyone's vectors, then data-parallel training.

The same file is launched by `course_utils.processes` on one machine and by a Kubernetes Indexed
Job on many. Who it is it reads from the environment: COORDINATOR_ADDRESS, PROCESS_COUNT and
JOB_COMPLETION_INDEX, and optionally HEARTBEAT_SECONDS and INITIALIZATION_SECONDS.
"""

import argparse
import contextlib
import io
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from course_utils import fashion_mnist
from course_utils.processes import network
from course_utils.processes.training import Run, train

# jax.distributed.initialize gives up this much later than it is told.
_JAX_WAITS_LONGER_S = 5


def join() -> None:
    """Become one of the processes that the environment tells of; every other JAX call comes after.

    Raises:
        KeyError: a variable is missing.
        RuntimeError: the processes that came are not as many as this one was told.
    """
    address = os.environ["COORDINATOR_ADDRESS"]
    count, index = int(os.environ["PROCESS_COUNT"]), int(os.environ["JOB_COMPLETION_INDEX"])
    patience = int(os.environ.get("INITIALIZATION_SECONDS", 300))
    say(f"process {index} of {count}: joining at {address}, for at most {patience} s")
    if note := network.note(address):
        say(note)
    jax.distributed.initialize(
        coordinator_address=address,
        num_processes=count,
        process_id=index,
        # All is said: under Kubernetes JAX would look for a service account's token.
        cluster_detection_method="deactivate",
        coordinator_bind_address=network.bind_address(address),
        heartbeat_timeout_seconds=int(os.environ.get("HEARTBEAT_SECONDS", 10)),
        initialization_timeout=max(1, patience - _JAX_WAITS_LONGER_S),
    )
    # The coordinator's count is the one that holds; JAX compares nobody else's with it.
    if jax.process_count() != count:
        raise RuntimeError(
            f"process {index} was told PROCESS_COUNT={count}, the coordinator "
            f"{jax.process_count()}: give all processes the same."
        )


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


def say(line: str) -> None:
    """Print a line at once: the next thing may be this process's end."""
    print(line, flush=True)


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


def run_or_end(work: Callable[[], None]) -> None:
    """Do the work; on an error end this process at once, so that the others learn of it.

    An ordinary exit would wait in JAX's shutdown until all processes are there, while they
    wait for this one in a collective.
    """
    try:
        work()
    except BaseException:
        traceback.print_exc()
        sys.stdout.flush()
        os._exit(1)


if __name__ == "__main__":
    options = parse()
    run_or_end(lambda: work(options))
