"""Which process is at fault, and what to say of it."""

import re
import signal
import time
from collections.abc import Sequence

from course_utils.processes.environment import Plan
from course_utils.processes.member import Member
from course_utils.processes.outcome import ProcessFailed, in_words

SHOWN_LINES = 15
# Addresses in C++ code under a failed check, and gloo's greetings: many lines that say nothing.
_SAYS_NOTHING = re.compile(r"\s*@\s+0x|\*\*\* Check failure stack trace|\[Gloo\] Rank |\s*$")
_HINTS = {
    -signal.SIGKILL: "If nobody killed it, the system ran out of memory.",
    -signal.SIGABRT: "A library gave up, or it lost the coordinator.",
    -signal.SIGSEGV: "A library crashed: check that the installed versions are the locked ones.",
}
_LATE = "It hangs before jax.distributed.initialize, or can't reach the coordinator's address."
_ALL_HERE = (
    "All {count} processes came to the coordinator, which waited for more: "
    "was another process count set?"
)


def failure(members: Sequence[Member], plan: Plan) -> ProcessFailed:
    """The error for processes of which one has ended badly, or not come in time."""
    # When one dies the others follow, with errors of their own: by what they say, or by
    # SIGABRT when JAX misses a heartbeat. So the cause is not always the first one seen.
    failed = [member for member in members if member.status]
    signalled = [m for m in failed if m.status < 0 and m.status != -signal.SIGABRT]
    stopped = [member for member in members if member.stopped_at is not None]
    own = [member for member in failed if not member.blames_another]
    # Without the coordinator's process, which is the first, nobody can come.
    absent = [member for member in members if not member.arrived][:1]
    culprit = min(
        next(filter(None, (signalled, stopped, own, absent, failed))),
        key=lambda member: member.ended_at or time.monotonic(),
    )
    if culprit.status is None:
        return stopped_too_long(culprit, members) if stopped else late(culprit, members, plan)
    seconds = culprit.finished().seconds
    said = f"{_name(culprit, members)} {in_words(culprit.status)} after {seconds:.1f} s."
    return _error(f"{said} {_hint(culprit, members)}".strip(), culprit, members)


def late(culprit: Member, members: Sequence[Member], plan: Plan) -> ProcessFailed:
    """The error for a process that was not seen at the coordinator in time."""
    message = (
        f"{_name(culprit, members)} has not come to the coordinator within "
        f"{plan.initialization_timeout} s. {_LATE}"
    )
    return _error(message, culprit, members)


def stopped_too_long(culprit: Member, members: Sequence[Member]) -> ProcessFailed:
    """The error for a process that is stopped and so sends no heartbeat."""
    seconds = time.monotonic() - (culprit.stopped_at or time.monotonic())
    message = (
        f"{_name(culprit, members)} is stopped (SIGSTOP) and has not moved for "
        f"{seconds:.1f} s. The others wait for it in every collective."
    )
    return _error(message, culprit, members)


def overtime(members: Sequence[Member], timeout: float) -> ProcessFailed:
    """The error for a launch that exceeds its time: all that still run, most silent first."""
    now = time.monotonic()
    running = sorted((m for m in members if m.status is None), key=lambda m: m.said_at)
    named = ", ".join(f"process {m.index} (silent for {now - m.said_at:.1f} s)" for m in running)
    message = f"not finished after {timeout:g} s: {named} of {len(members)}."
    return _error(message, running[0], members)


def _name(member: Member, members: Sequence[Member]) -> str:
    return f"process {member.index} of {len(members)}"


def _hint(culprit: Member, members: Sequence[Member]) -> str:
    if culprit.status == 0:
        return "It had never come to the coordinator, where the others waited for it."
    said = "\n".join(culprit.lines)
    # JAX 0.10 may crash on a taken port, before it can raise its error.
    if "Failed to add port to server" in said or "Failed to start RPC server" in said:
        return "The coordinator's port is taken, or its address is not one of this machine."
    if "RegisterTask" in said:
        return _LATE if not culprit.arrived else _ALL_HERE.format(count=len(members))
    return _HINTS.get(culprit.status, "")


def _error(message: str, culprit: Member, members: Sequence[Member]) -> ProcessFailed:
    lines = [line for line in culprit.lines if not _SAYS_NOTHING.match(line)][-SHOWN_LINES:]
    shown = "\n".join(f"[{culprit.index}] {line}" for line in lines)
    what = f"The last lines of process {culprit.index}:\n{shown}" if lines else "It said nothing."
    return ProcessFailed(f"{message}\n{what}", culprit.index, [m.finished() for m in members])
