"""Ctrl-C and its relatives, turned into a request that everyone can look at."""

import signal
from types import FrameType

STOPPING = ("SIGINT", "SIGTERM", "SIGHUP")  # SIGHUP: the terminal was closed


class Stop:
    """Whether a signal asked this process to end.

    An exception out of a signal handler could surface inside the event loop that talks to
    a kernel, between two steps of its clean-up. So the handler only notes the signal; the
    watch kills the kernel, and what waited for it returns.
    """

    def __init__(self) -> None:
        self.signal: signal.Signals | None = None

    def listen(self) -> None:
        """Take over the signals that end a process; only the main thread may."""
        for name in STOPPING:
            if hasattr(signal, name):
                signal.signal(getattr(signal, name), self._note)

    def _note(self, number: int, _frame: FrameType | None) -> None:
        self.signal = self.signal or signal.Signals(number)

    @property
    def exit_status(self) -> int:
        """What a shell expects of a process that a signal ended: 130 after Ctrl-C."""
        return 128 + self.signal if self.signal else 0
