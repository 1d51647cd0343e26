"""Find what a launch left behind: processes that inherited a mark in their environment."""

import time
import uuid

import psutil

NAME = "COURSE_TEST_MARK"


class Mark:
    """Put `environment` into a launcher's environment, then ask who is alive."""

    def __init__(self):
        self.value = uuid.uuid4().hex
        self.environment = {NAME: self.value}

    def alive(self):
        """Processes with the mark; a dead one that waits to be reaped is none."""
        found = []
        for process in psutil.process_iter(["environ", "status", "cmdline"]):
            marked = (process.info["environ"] or {}).get(NAME) == self.value
            if marked and process.info["status"] != psutil.STATUS_ZOMBIE:
                found.append(process)
        return found

    def wait_until_gone(self, seconds=3.0):
        """What is still alive after so long; the guard looks ten times a second."""
        deadline = time.monotonic() + seconds
        while (left := self.alive()) and time.monotonic() < deadline:
            time.sleep(0.05)
        return left
