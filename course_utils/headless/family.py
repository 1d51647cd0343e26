"""The processes of a kernel: marked when it starts, found and ended when it is over."""

import uuid
from collections.abc import Iterable, Mapping

import psutil

MARK = "JAX_COURSE_KERNEL"
# The runner's own options, and what make and pytest tell their children.
NOT_FOR_KERNELS = {
    *("LESSONS", "PROFILE", "DEVICES", "PARAMS", "REFRESH", "RESUME", "REPEAT"),
    *("A", "B", "THRESHOLD", "JSON", "PORT"),
    *("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "PYTEST_CURRENT_TEST"),
}


class Family:
    """A kernel and whatever it starts, recognised by a mark in their environment.

    A child whose parent has died is nobody's descendant any more, so a look at the process
    tree at the end would miss it; the mark is inherited whatever happens to the parents.
    """

    def __init__(self) -> None:
        self.mark = uuid.uuid4().hex
        self._seen: set[psutil.Process] = set()

    def environment(self, inherited: Mapping[str, str]) -> dict[str, str]:
        """The environment that the kernel starts with."""
        kept = {name: value for name, value in inherited.items() if name not in NOT_FOR_KERNELS}
        return {"XLA_PYTHON_CLIENT_PREALLOCATE": "false", **kept, MARK: self.mark}

    def meet(self, processes: Iterable[psutil.Process]) -> None:
        """Remember members seen in the process tree: some clear their environment."""
        self._seen.update(processes)

    def kill(self) -> None:
        """End them all, again for what was started meanwhile; what cannot end is left."""
        for _ in range(5):
            alive = [process for process in self._members() if _kill(process)]
            if not alive:
                return
            psutil.wait_procs(alive, timeout=1)

    def _members(self) -> set[psutil.Process]:
        marked = (
            process
            for process in psutil.process_iter(["environ"])
            if (process.info["environ"] or {}).get(MARK) == self.mark
        )
        return {*marked, *self._seen}


def _kill(process: psutil.Process) -> bool:
    """Whether there was a process to kill: a dead one waiting to be reaped is none."""
    try:
        if not process.is_running() or process.status() == psutil.STATUS_ZOMBIE:
            return False
        process.kill()
    except psutil.Error:
        return False
    return True
