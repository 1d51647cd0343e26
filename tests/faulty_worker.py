"""A worker with one fault: faulty_worker.py FAULT PROCESS [ADDRESS].

It joins and meets the others in collectives for ever; process PROCESS has the fault, and prints
when it happens by the clock that all processes of a machine share.
"""

import os
import signal
import sys
import time

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from course_utils.processes import worker

FAULT, AT = sys.argv[1], int(sys.argv[2])
ME = int(os.environ["JOB_COMPLETION_INDEX"])


def before_joining():
    if FAULT == "hangs at once":
        time.sleep(1000)
    if FAULT == "leaves at once":
        os._exit(0)
    if FAULT.endswith(" address"):
        os.environ["COORDINATOR_ADDRESS"] = sys.argv[3]
    if FAULT == "counts three":
        os.environ["PROCESS_COUNT"] = "3"


def in_the_middle():
    print(f"planted at {time.monotonic()}", flush=True)
    if FAULT.startswith("SIG"):
        os.kill(os.getpid(), getattr(signal, FAULT))
    if FAULT == "raises":
        raise ValueError("the planted error")


def work():
    affected = AT in (ME, -1)
    if affected:
        before_joining()
    worker.join()
    split = NamedSharding(Mesh(jax.devices(), "data"), P("data"))
    everyones = jax.make_array_from_process_local_data(split, np.ones(1, np.float32))
    add_up = jax.jit(lambda ones: ones.sum(), out_shardings=NamedSharding(split.mesh, P()))
    for round in range(10_000):
        add_up(everyones).block_until_ready()
        if round == 2 and affected:
            in_the_middle()
        if round == 2:
            print("met", flush=True)
        time.sleep(0.02)


if __name__ == "__main__":
    worker.run_or_end(work)
