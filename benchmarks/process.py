"""One variant's process: started, asked, and ended with all that it has started."""

import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from multiprocessing.connection import Client, Connection
from pathlib import Path
from typing import Any

from benchmarks.variant import Variant
from course_utils.processes.group import Group


class WorkerFailed(RuntimeError):
    """A variant said no, crashed or hung; the message is what its row shows."""


class Worker:
    """One variant in its process, which ends with this object's `close`."""

    def __init__(self, variant: Variant, scratch: Path, patience: float) -> None:
        self._group = Group()
        # The address of a socket has a hundred characters at most; TMPDIR may be longer.
        short = None if len(tempfile.gettempdir()) < 50 else "/tmp"
        self._folder = tempfile.TemporaryDirectory(prefix="jax-course-bench-", dir=short)
        self._last_lines: deque[str] = deque(maxlen=20)
        self._channel: Connection | None = None
        address = f"{self._folder.name}/channel"
        command = [sys.executable, "-m", "benchmarks.worker", address, variant.target]
        self._group.__enter__()
        try:
            self._process = self._group.start(
                [*command, variant.needs, *variant.arguments], variant.process_environment(scratch)
            )
            self._reader = threading.Thread(target=self._listen, daemon=True)
            self._reader.start()
            self._channel = self._connect(address, time.monotonic() + patience)
        except BaseException:
            self.close()
            raise

    def ask(self, method: str, patience: float) -> Any:
        """Return what the variant's `method` returns, or raise WorkerFailed within `patience` s."""
        try:
            self._channel.send(method)
            late = False, f"no answer within {patience:.0f} s: ended"
            done, answer = self._channel.recv() if self._channel.poll(patience) else late
        except (EOFError, OSError):
            raise WorkerFailed(self._epitaph()) from None
        except Exception as error:  # whatever unpickling a stranger's object may raise
            raise WorkerFailed(f"its answer can't be read: {error}") from None
        if not done:
            raise WorkerFailed(answer)
        return answer

    def close(self) -> None:
        """End the process and whatever it has started."""
        if self._channel:
            self._channel.close()
        self._group.__exit__()
        self._folder.cleanup()

    def _connect(self, address: str, deadline: float) -> Connection:
        while time.monotonic() < deadline:
            try:
                return Client(address, family="AF_UNIX")
            except (FileNotFoundError, ConnectionRefusedError):
                if self._process.poll() is not None:
                    raise WorkerFailed(self._epitaph()) from None
                time.sleep(0.01)
        raise WorkerFailed("the process did not start in time: ended")

    def _listen(self) -> None:
        for line in self._process.stdout:
            if line.strip():
                self._last_lines.append(line.strip())

    def _epitaph(self) -> str:
        try:
            status = self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            return "it hung up, but its process didn't end: ended"
        self._reader.join(timeout=1)
        last = self._last_lines[-1] if self._last_lines else "it said nothing"
        return f"its process ended with status {status}: {last}"
