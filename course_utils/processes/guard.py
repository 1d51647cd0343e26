"""Kills a group of processes when their launcher is gone: python guard.py PARENT_PID.

It leads the process group that the launcher's processes join, and does nothing but look whether
the launcher is alive. A launcher that is killed by SIGKILL can't clean up, and a process that is
stopped, or stuck in C code, can't look after itself; SIGKILL from here reaches them all.
"""

import os
import signal
import sys
import time


def main() -> None:
    """Wait until this process's parent is another one, then end the group, itself included."""
    # The system sends SIGHUP to a group that lost its launcher, if a member is stopped.
    for name in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(name, signal.SIG_IGN)
    print("ready", flush=True)
    while os.getppid() == int(sys.argv[1]):
        time.sleep(0.1)
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    main()
