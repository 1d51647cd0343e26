"""One kernel under watch: its memory, its limits of time, and why it ended."""

import contextlib
import signal
import subprocess
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

from course_utils.headless.family import Family
from course_utils.headless.stop import Stop

INTERVAL_S = 0.1
HINTS = {
    "SIGKILL": "Most likely the system ran out of memory: give the lesson fewer DEVICES or a "
    "smaller batch, close other kernels, or use a machine with more memory.",
    "SIGABRT": "A library gave up. On simulated devices, give the lesson no more DEVICES than "
    "this machine has cores.",
    "SIGSEGV": "A library crashed: check that the installed versions are the locked ones.",
}


@dataclass(frozen=True)
class Limits:
    """How long one cell and one whole lesson may take, in seconds."""

    cell_s: float = 300.0
    lesson_s: float = 900.0


@dataclass(frozen=True)
class Reason:
    """Why a kernel is gone: a status of results.json, and words for a person."""

    status: str
    message: str
    hint: str = ""


class Watch:
    """Watches the kernel of one lesson from a thread, and kills it when its time is up.

    SIGKILL is the only end that a cell stuck in C code heeds. nbclient notices within a
    second that the kernel is dead, and raises; `why` then says what happened.
    """

    def __init__(self, limits: Limits, stop: Stop) -> None:
        self.limits, self.stop = limits, stop
        self.family = Family()
        self.reason: Reason | None = None
        self.peak_bytes = 0
        self.cell_since: float | None = None
        self._kernel: subprocess.Popen[bytes] | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="watch", daemon=True)

    def __enter__(self) -> "Watch":
        self._since = time.monotonic()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self.family.kill()

    def attach(self, kernel: "subprocess.Popen[bytes]") -> None:
        """Watch this process, just launched as the kernel."""
        self._kernel = kernel

    def why(self) -> Reason:
        """Why the kernel is gone: our own doing, or what its exit status tells."""
        self.reason = self.reason or self._verdict()
        if self.reason:
            return self.reason
        status = self._kernel.poll() if self._kernel else None
        if status is None or status >= 0:
            return Reason("failed", f"The kernel died (exit status {status}).")
        name = signal.Signals(-status).name
        return Reason("failed", f"The kernel died ({name}).", HINTS.get(name, ""))

    def _loop(self) -> None:
        while not self._over.wait(INTERVAL_S):
            self._sample()
            self.reason = self.reason or self._verdict()
            if self.reason:
                self.family.kill()

    def _verdict(self) -> Reason | None:
        if self.stop.signal:
            return Reason("interrupted", f"Stopped by {self.stop.signal.name}.")
        now = time.monotonic()
        for what, since, limit_s in (
            ("cell", self.cell_since, self.limits.cell_s),
            ("lesson", self._since, self.limits.lesson_s),
        ):
            if since is not None and now - since > limit_s:
                said = f"The {what} ran longer than {limit_s:g} s and was stopped."
                hint = f"If it needs longer: --{what}-timeout SECONDS."
                return Reason("timeout", said, hint)
        return None

    def _sample(self) -> None:
        if self._kernel is None:
            return
        with contextlib.suppress(psutil.Error, OSError):
            kernel = psutil.Process(self._kernel.pid)
            children = kernel.children(recursive=True)
            self.family.meet([kernel, *children])
            used = sum(_resident(process) for process in [kernel, *children])
            self.peak_bytes = max(self.peak_bytes, used, _high_water(kernel.pid))


def _resident(process: psutil.Process) -> int:
    with contextlib.suppress(psutil.Error):
        return int(process.memory_info().rss)
    return 0


def _high_water(pid: int) -> int:
    # Linux keeps the peak itself: one between two samples is not missed.
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return 0
