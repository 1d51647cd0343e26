"""How a process joins a run of many, and how it leaves it on an error.

Who it is it reads from the environment: COORDINATOR_ADDRESS ("host:port" of process 0),
PROCESS_COUNT and JOB_COMPLETION_INDEX; optionally HEARTBEAT_SECONDS (10), after which a silent
process is lost, and INITIALIZATION_SECONDS (300), in which all must have come.
"""

import os
import sys
import traceback
from collections.abc import Callable

import jax

from course_utils.processes import network

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


def say(line: str) -> None:
    """Print a line at once: the next thing may be this process's end."""
    print(line, flush=True)
