"""What is left of a process when it has ended, and the error that names the one at fault."""

import signal
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Finished:
    """A process that has ended.

    Attributes:
        index: its number, 0 for the coordinator's.
        exit_status: 0, or the negative number of the signal that ended it; None if it had to be
            stopped because of another.
        seconds: how long it ran.
        lines: what it printed on both streams, the last 1000 lines.
    """

    index: int
    exit_status: int | None
    seconds: float
    lines: tuple[str, ...] = field(repr=False)


class ProcessFailed(RuntimeError):
    """A launch that was stopped: the message names the process at fault and shows its last lines.

    Attributes:
        index: the process at fault, the first of them if it was several.
        finished: all of them, as they were when the launch was stopped.
    """

    def __init__(self, message: str, index: int, finished: list[Finished]) -> None:
        super().__init__(message)
        self.index = index
        self.finished = finished


def in_words(exit_status: int) -> str:
    """An exit status for people: "exit status 1", "killed by SIGKILL"."""
    if exit_status >= 0:
        return f"ended with exit status {exit_status}"
    try:
        return f"was ended by {signal.Signals(-exit_status).name}"
    except ValueError:  # a real-time signal has no name
        return f"was ended by signal {-exit_status}"
