"""The worker, killed by SIGKILL in one process: dying_worker.py MOMENT PROCESS WORKER_OPTIONS...

MOMENT is "step N" (before it is taken) or "save N" (in the middle of writing the Nth file).
"""

import os
import signal
import sys

from course_utils.processes import joining, saving, training, worker

(WHAT, NUMBER), AT = sys.argv[1].split(), int(sys.argv[2])


def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)


def dies_at_the(number, function):
    calls = iter(range(1, number))
    return lambda *arguments: (die if next(calls, None) is None else function)(*arguments)


if __name__ == "__main__":
    if int(os.environ["JOB_COMPLETION_INDEX"]) == AT:
        if WHAT == "step":
            training.global_batch = dies_at_the(int(NUMBER), training.global_batch)
        else:
            saving.os.fsync = dies_at_the(int(NUMBER), os.fsync)
    joining.run_or_end(lambda: worker.work(worker.parse(sys.argv[3:])))
