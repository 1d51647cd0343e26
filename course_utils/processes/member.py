"""One launched process: what it says, whether it came to the coordinator, how it ended."""

import contextlib
import queue
import subprocess
import threading
import time
from collections import deque

import psutil

from course_utils.processes.outcome import Finished

KEPT_LINES = 1000
LONGEST_LINE = 4096

# What a process says that dies because another one has.
_BLAMES_ANOTHER = (
    "JAX distributed service detected fatal errors",
    "Connection closed by peer",
    "Connection reset by peer",
    "Broken pipe",
)

Said = tuple["Member", str]


class Member:
    """A process under watch, with a thread that reads its output.

    Attributes:
        lines: its last lines.
        said: how many lines it printed.
        said_at: when it printed the last one, by `time.monotonic`.
        ended_at: when it was seen to have ended; None while it runs.
        stopped_at: since when it is stopped (SIGSTOP, Ctrl-Z); None while it isn't.
        arrived_at: when it was first seen connected to the coordinator; None before.
    """

    def __init__(self, index: int, process: subprocess.Popen[str], said: "queue.Queue[Said]"):
        self.index, self.process, self._queue = index, process, said
        self.lines: deque[str] = deque(maxlen=KEPT_LINES)
        self.said = 0
        self.started = self.said_at = time.monotonic()
        self.ended_at: float | None = None
        self.stopped_at: float | None = None
        self.arrived_at: float | None = None
        self._closed_at: float | None = None
        self._reader = threading.Thread(target=self._read, name=f"process {index}", daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as stream:
            # A limit, because a line may never end.
            while line := stream.readline(LONGEST_LINE):
                self._queue.put((self, line.rstrip("\n")))
        self._closed_at = time.monotonic()

    def hear(self, line: str) -> None:
        """Keep a line that the reader has put into the queue."""
        self.lines.append(line)
        self.said += 1
        self.said_at = time.monotonic()

    def look(self, port: int) -> None:
        """Bring `ended_at`, `stopped_at` and `arrived_at` up to date."""
        if self.ended_at is None and self.process.poll() is not None:
            # Closed output tells the order of deaths better than the moment of our look.
            self.ended_at = self._closed_at or time.monotonic()
        if self.ended_at is not None:
            self.stopped_at = None
            return
        with contextlib.suppress(psutil.Error):
            process = psutil.Process(self.process.pid)
            stopped = process.status() == psutil.STATUS_STOPPED
            self.stopped_at = (self.stopped_at or time.monotonic()) if stopped else None
            if self.arrived_at is None and _connected(process, port):
                self.arrived_at = time.monotonic()

    @property
    def arrived(self) -> bool:
        """Whether it was seen connected to the coordinator, lately or before."""
        return self.arrived_at is not None

    @property
    def status(self) -> int | None:
        """Its exit status, negative after a signal; None while it runs."""
        return self.process.returncode if self.ended_at is not None else None

    @property
    def read_to_the_end(self) -> bool:
        """Whether its reader has put all it said into the queue."""
        return not self._reader.is_alive()

    @property
    def blames_another(self) -> bool:
        """Whether its last lines say that it ends because another process has."""
        return any(mark in line for line in list(self.lines)[-100:] for mark in _BLAMES_ANOTHER)

    def finished(self) -> Finished:
        """What is to be told of it."""
        seconds = (self.ended_at or time.monotonic()) - self.started
        return Finished(self.index, self.status, seconds, tuple(self.lines))


def _connected(process: psutil.Process, port: int) -> bool:
    return any(
        connection.raddr and connection.raddr.port == port
        for connection in process.net_connections("tcp")
        if connection.status == psutil.CONN_ESTABLISHED
    )
