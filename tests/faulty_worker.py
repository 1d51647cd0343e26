"""A worker with one fault: faulty_worker.py FAULT PROCESS [ADDRESS].

It joins and meets the others in collectives for ever; process PROCESS (-1: each) has the fault.
It prints when that happens, and before that when it joins, by the clock that processes share.
"""

import os
import signal
import sys
import time

FAULT, AT = sys.argv[1], int(sys.argv[2])
AFFECTED = AT in (int(os.environ["JOB_COMPLETION_INDEX"]), -1)


def at_the_start():
    if FAULT == "hangs at once":
        time.sleep(1000)
    if FAULT == "leaves at once":
        sys.exit(0)
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


def meet_for_ever():
    # Here, so that a process that never comes takes no time from the others either.
    import jax
    import numpy as np
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    from course_utils.processes import joining

    def work():
        print(f"joins at {time.monotonic()}", flush=True)
        joining.join()
        mesh = Mesh(jax.devices(), "data")
        split, whole = (NamedSharding(mesh, PartitionSpec(*axes)) for axes in (["data"], []))
        everyones = jax.make_array_from_process_local_data(split, np.ones(1, np.float32))
        add_up = jax.jit(lambda ones: ones.sum(), out_shardings=whole)
        for meeting in range(10_000):
            add_up(everyones).block_until_ready()
            if meeting == 2 and AFFECTED:
                in_the_middle()
            time.sleep(0.02)

    joining.run_or_end(work)


if __name__ == "__main__":
    if AFFECTED:
        at_the_start()
    meet_for_ever()
