"""Start N local JAX processes and see them to their end."""

import functools
import os
import queue
import sys
from collections.abc import Mapping, Sequence

from course_utils.processes.environment import Plan, free_port
from course_utils.processes.group import Group
from course_utils.processes.member import Member, Said
from course_utils.processes.outcome import Finished
from course_utils.processes.watch import Echo, Watch


def launch(
    argv: Sequence[str],
    processes: int,
    devices_per_process: int,
    timeout: float,
    *,
    heartbeat: int = 10,
    initialization_timeout: int = 60,
    gpus: bool = False,
    environment: Mapping[str, str] | None = None,
    echo: Echo | None = None,
) -> list[Finished]:
    """Run `python *argv` in so many processes at once; each is a JAX process of one run.

    Each finds in its environment who it is (see `environment`), sees `devices_per_process`
    simulated CPU devices, and is expected to call `jax.distributed.initialize`. What they print
    is passed on line by line with the process number in front, up to 500 lines each. When one
    fails, all are stopped; when this function returns or raises, none is left, and when the
    launcher is killed, none is left a moment later.

    Args:
        argv: the arguments of Python: a file, or "-m" and a module, and its own arguments.
        processes: how many.
        devices_per_process: how many devices each has for itself.
        timeout: seconds for the whole run.
        heartbeat: seconds after which a process that gives no sign of life is lost.
        initialization_timeout: seconds for all processes to come to the coordinator.
        gpus: give each process GPUs of its own instead.
        environment: variables for all processes, beside and before this process's own.
        echo: takes each line; prints by default.

    Returns:
        One `Finished` for each process, in order; all their exit statuses are 0.

    Raises:
        ProcessFailed: one ended badly, was stopped for a heartbeat, never came to the
            coordinator, or time was up; it says which, and shows its last lines.
        ValueError: a count or a time that is not positive, or more GPUs than are visible.
    """
    times = {"timeout": timeout, "heartbeat": heartbeat}
    counts = {"processes": processes, "devices_per_process": devices_per_process}
    times["initialization_timeout"] = initialization_timeout
    _check(counts | times)
    echo = echo or functools.partial(print, flush=True)
    with free_port() as port:
        plan = Plan(processes, devices_per_process, port, heartbeat, initialization_timeout, gpus)
        inherited = {**os.environ, **(environment or {})}
        environments = [plan.environment(index, inherited) for index in range(processes)]
        return _run([sys.executable, *argv], environments, plan, timeout, echo)


def _run(
    command: Sequence[str],
    environments: Sequence[Mapping[str, str]],
    plan: Plan,
    timeout: float,
    echo: Echo,
) -> list[Finished]:
    said: queue.Queue[Said] = queue.Queue(maxsize=1000)
    members: list[Member] = []
    watch = Watch(members, said, plan, echo)
    try:
        with Group() as group:
            for index, environment in enumerate(environments):
                members.append(Member(index, group.start(command, environment), said))
            watch.until_all_end(timeout)
    except BaseException:
        watch.drain(silently=True)  # the error says what matters
        raise
    watch.drain(silently=False)
    return [member.finished() for member in members]


def _check(numbers: Mapping[str, float]) -> None:
    for name, value in numbers.items():
        if not value > 0:
            raise ValueError(f"launch needs {name} > 0, not {value}.")
