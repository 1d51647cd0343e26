"""What is seen while lessons run: a live line in a terminal, few plain lines elsewhere."""

import os
import sys
import time
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.text import Text

from course_utils.headless.collect import collect
from course_utils.headless.engine import Execution


class Progress:
    """Plain lines: one when a lesson starts, one when it ends."""

    def start(self, name: str, place: str) -> None:
        """A lesson starts; `place` is "2/11"."""
        self.name, self.place, self._since = name, place, time.monotonic()
        self.say(f"[{place}] {name} ...")

    def cell(self, execution: Execution) -> None:
        """A cell of the lesson starts or has ended."""

    def end(self, entry: dict[str, Any]) -> None:
        """The lesson is over; `entry` is what results.json says of it."""
        passed = sum(checkpoint["passed"] for checkpoint in entry["checkpoints"])
        self.say(
            f"[{self.place}] {entry['name']} {entry['status']} in {entry['seconds']:.1f} s, "
            f"{passed}/{len(entry['checkpoints'])} checkpoints"
        )

    def say(self, text: str) -> None:
        """Print lines that stay; a reader that went away (`| head`) does not end the run."""
        try:
            print(text, flush=True)
        except OSError:
            sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115


class LiveProgress(Progress):
    """The same for a terminal, where the lesson that runs has one line that changes."""

    def start(self, name: str, place: str) -> None:
        """Begin the line."""
        self.name, self.place, self._since = name, place, time.monotonic()
        self._state = "starting a kernel"
        self._live = Live(
            console=Console(), get_renderable=self._line, transient=True, refresh_per_second=4
        )
        self._live.start()

    def cell(self, execution: Execution) -> None:
        """Note what the next refresh shows."""
        done, passed = len(execution.cell_seconds), 0
        if execution.notebook:
            passed = sum(c["passed"] for c in collect(execution.notebook.cells).checkpoints)
        at = min(done + 1, execution.cells)
        self._state = f"cell {at}/{execution.cells}, {passed} checkpoints passed"

    def end(self, entry: dict[str, Any]) -> None:
        """Replace the line by the plain one."""
        self._live.stop()
        super().end(entry)

    def _line(self) -> Text:
        minutes, seconds = divmod(int(time.monotonic() - self._since), 60)
        return Text(f"[{self.place}] {self.name}  {minutes}:{seconds:02d}  {self._state}")


def for_this_terminal() -> Progress:
    """Live lines where someone looks at a screen, plain ones in a log."""
    screen = sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"
    return LiveProgress() if screen else Progress()
