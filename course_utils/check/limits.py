"""Ask with a limit of time: in a thread for what is quick, in a process for what starts JAX."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable

from course_utils.check.row import Row

Probe = Callable[[], Row]


class NoAnswer(Exception):
    """A process that gave no answer; the message says why."""


def within(seconds: float, name: str, probe: Probe) -> Row:
    """The row of a probe; a [FAIL] if it takes longer, or fails itself."""
    answer: list[Row] = []

    def ask() -> None:
        try:
            answer.append(probe())
        except Exception as error:
            said = f"the check itself failed: {type(error).__name__}: {error}"
            answer.append(Row("FAIL", name, said, "Please report this with the whole table."))

    # A daemon: a thread that waits for a dead file system must not keep us from ending.
    thread = threading.Thread(target=ask, name=f"check {name}", daemon=True)
    thread.start()
    thread.join(seconds)
    if answer:
        return answer[0]
    cure = "Something here waits for a disk, a network or a driver that does not answer."
    return Row("FAIL", name, f"no answer within {seconds:g} s", cure)


def ask_process(arguments: list[str], seconds: float, environment: dict[str, str]) -> dict:
    """The JSON that `python -m course_utils.check.jax_probe ...` prints as its last line.

    Raises:
        NoAnswer: it took longer, and was killed with its children; or it failed.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", "course_utils.check.jax_probe", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "XLA_PYTHON_CLIENT_PREALLOCATE": "false", **environment},
        start_new_session=True,
    )
    try:
        said, complained = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired as error:
        _kill(process)
        raise NoAnswer(f"no answer within {seconds:g} s: it hangs") from error
    lines = said.strip().splitlines()
    if process.returncode == 0 and lines:
        return json.loads(lines[-1])
    last = (complained.strip().splitlines() or lines or ["it printed nothing"])[-1]
    ended = f"signal {-process.returncode}" if process.returncode < 0 else process.returncode
    raise NoAnswer(f"ended with {ended}: {last[:300]}")


def _kill(process: subprocess.Popen[str]) -> None:
    if hasattr(os, "killpg"):
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    # Not even SIGKILL ends a process that waits inside a driver: don't wait for it for ever.
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.communicate(timeout=5)
