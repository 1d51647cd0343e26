"""The processes of one launch: they start together and none outlives the others or the launcher."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

GUARD = Path(__file__).with_name("guard.py")


class Group:
    """A process group led by a guard; leaving the `with` block kills whatever is left of it.

    Subprocesses are spawned without running Python in between (no preexec_fn), so a notebook
    whose JAX has started can launch: JAX warns of forks only.
    """

    def __init__(self) -> None:
        self._started: list[subprocess.Popen[str]] = []

    def __enter__(self) -> "Group":
        # A file on its own, without site-packages: up in 20 ms.
        self.guard = subprocess.Popen(
            [sys.executable, "-I", "-S", str(GUARD), str(os.getpid())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            process_group=0,
            text=True,
        )
        assert self.guard.stdout is not None
        try:
            self.guard.stdout.readline()  # from here on it ignores what would end it
        except BaseException:
            self.__exit__()
            raise
        return self

    def start(
        self, command: Sequence[str], environment: Mapping[str, str]
    ) -> subprocess.Popen[str]:
        """Start a member; its output, both streams in one, comes through its `stdout`."""
        process = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            process_group=self.guard.pid,
            text=True,
            errors="replace",
        )
        self._started.append(process)
        return process

    def __exit__(self, *_: object) -> None:
        # SIGKILL: JAX takes SIGTERM for the notice that a machine will go, and carries on. The
        # guard isn't reaped before this, so its number can't belong to anyone else.
        os.killpg(self.guard.pid, signal.SIGKILL)
        for process in (*self._started, self.guard):
            # One that hangs in a driver can't end; it will, as soon as the driver lets it.
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=5)
        self.guard.stdout.close()
