"""Follows a launch until all its processes have ended well, or one is in trouble."""

import queue
import time
from collections.abc import Callable, Sequence

from course_utils.processes import blame
from course_utils.processes.environment import Plan
from course_utils.processes.member import Member, Said

LOOK_EVERY_S = 0.05
ECHOED_LINES = 500  # of each process; a flood would bury the others and a notebook
# How long the deaths that follow from one are waited for, before one is called the cause.
SETTLE_S = 0.3

# What gloo prints for each device, each time that devices meet in a new constellation.
_NOISE = "[Gloo] Rank "
# The system's and Python's own time to start a process, added where none has arrived.
STARTING_S = 3

Echo = Callable[[str], None]


class Watch:
    """Hears and looks after the members of one launch, in the launcher's own thread."""

    def __init__(
        self, members: Sequence[Member], said: "queue.Queue[Said]", plan: Plan, echo: Echo
    ) -> None:
        self.members, self.plan = members, plan
        self._said, self._echo = said, echo

    def until_all_end(self, timeout: float) -> None:
        """Return when every process has ended with status 0.

        Raises:
            ProcessFailed: as soon as one has not, is stopped for a heartbeat, has not come to
                the coordinator in time, or time is up.
        """
        start = time.monotonic()
        while not all(member.status == 0 for member in self.members):
            self._hear(LOOK_EVERY_S)
            self._look()
            if any(member.status for member in self.members):
                self._hear(SETTLE_S)
                self._look()
                raise blame.failure(self.members, self.plan)
            self._judge_the_silent(time.monotonic() - start, timeout)

    def drain(self, silently: bool) -> None:
        """Hear the rest once all are dead, so that their readers can end."""
        if silently:
            self._echo = lambda line: None
        deadline = time.monotonic() + 5
        while not all(m.read_to_the_end for m in self.members) and time.monotonic() < deadline:
            self._hear(0.01)
        self._hear(0)

    def _judge_the_silent(self, elapsed: float, timeout: float) -> None:
        now = time.monotonic()
        for member in self.members:
            if member.stopped_at is not None and now - member.stopped_at > self.plan.heartbeat:
                raise blame.stopped_too_long(member, self.members)
        absent = not all(member.arrived for member in self.members)
        if absent and now > self._deadline_to_arrive():
            raise blame.failure(self.members, self.plan)
        if elapsed > timeout:
            raise blame.overtime(self.members, timeout)

    def _deadline_to_arrive(self) -> float:
        # From the first arrival on: importing JAX takes long where many do it on few cores.
        patience = self.plan.initialization_timeout
        arrivals = [m.arrived_at for m in self.members if m.arrived_at is not None]
        started = self.members[0].started + STARTING_S
        return min(started, *arrivals) + patience if arrivals else started + patience

    def _look(self) -> None:
        for member in self.members:
            member.look(self.plan.port)

    def _hear(self, seconds: float) -> None:
        """Pass on what is said for so long, and no longer: a flood must not keep us from looking."""
        until = time.monotonic() + seconds
        while True:
            try:
                member, line = self._said.get(timeout=max(0.0, until - time.monotonic()))
            except queue.Empty:
                return
            member.hear(line)
            if member.said <= ECHOED_LINES and not line.startswith(_NOISE):
                self._echo(f"[{member.index}] {line}")
            elif member.said == ECHOED_LINES + 1:
                self._echo(f"[{member.index}] (it says a lot: the rest is not shown)")
            if time.monotonic() > until:
                return
