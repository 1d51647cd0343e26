"""Each way in which a run of real JAX processes can go wrong: who is named, and how soon.

The runs are independent and mostly wait, so they share the machine: a few at a time.
"""

import os
import re
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from process_marks import NAME, Mark

from course_utils.processes import ProcessFailed, launch, network
from course_utils.processes.environment import Plan, free_port

WORKER = str(Path(__file__).with_name("faulty_worker.py"))
# Long enough for a busy machine to import JAX a dozen times at once.
HEARTBEAT, INITIALIZATION = 5, 15
NOWHERE = "192.0.2.1:4000"  # an address that is reserved for examples

# fault, process that has it (-1: all), process to be named, and what is said of it
IN_THE_MIDDLE = [
    ("SIGKILL", 1, "process 1 of 2 was ended by SIGKILL"),
    ("SIGKILL", 0, "process 0 of 2 was ended by SIGKILL"),
    ("SIGSTOP", 1, r"process 1 of 2 is stopped \(SIGSTOP\)"),
    ("SIGSTOP", 0, r"process 0 of 2 is stopped \(SIGSTOP\)"),
    ("raises", 1, "(?s)process 1 of 2 ended with exit status 1.*ValueError: the planted error$"),
    ("raises", 0, "(?s)process 0 of 2 ended with exit status 1.*ValueError: the planted error$"),
]
AT_THE_START = [
    ("hangs at once", 1, "process 1 of 2 has not come to the coordinator within 15 s"),
    ("hangs at once", 0, "process 0 of 2 has not come to the coordinator within 15 s"),
    ("leaves at once", 1, "process 1 of 2 ended with exit status 0 .* had never come"),
    ("other address", 1, "process 1 of 2 .* can't reach the coordinator's address"),
    (
        "taken address",
        -1,
        "process 0 of 2 .* The coordinator's port is taken",
    ),
    ("counts three", 1, "(?s)process 1 of 2 ended .* told PROCESS_COUNT=3, the coordinator 2"),
    ("counts three", -1, "process . of 2 was ended by SIGABRT .* All 2 processes came .* count"),
]


ALONE = [("SIGSTOP", 1), ("SIGKILL", 0), ("hangs at once", 1)]


@pytest.fixture(scope="module")
def outcomes():
    """Start every run; a test waits for its own. None may leave a process behind."""
    mark = Mark()
    os.environ[NAME] = mark.value
    with socket.socket() as taken, ThreadPoolExecutor(4) as waiting, ThreadPoolExecutor(1) as busy:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        addresses = {
            "other address": NOWHERE,
            "taken address": f"127.0.0.1:{taken.getsockname()[1]}",
        }
        runs = {}
        for fault, at, _ in AT_THE_START:
            runs[fault, at] = waiting.submit(launched, fault, at, addresses.get(fault, ""))
        for fault, at in ALONE:
            runs["alone", fault, at] = waiting.submit(without_launcher, fault, at)
        for fault, at, _ in IN_THE_MIDDLE:
            runs[fault, at] = busy.submit(launched, fault, at)
        yield runs
    del os.environ[NAME]
    left = [process for process in mark.alive() if process.pid != os.getpid()]
    assert not left, left


def launched(fault, at, address=""):
    """The error, and how long after the fault it was raised."""
    start, heard = time.monotonic(), []
    try:
        launch([WORKER, fault, str(at), address], 2, 1, 60, heartbeat=HEARTBEAT,
               initialization_timeout=INITIALIZATION, echo=heard.append)  # fmt: skip
    except ProcessFailed as error:
        return error, time.monotonic() - moment_of_the_fault("\n".join(heard), start)
    raise AssertionError(f"{fault} went unnoticed:\n" + "\n".join(heard))


def moment_of_the_fault(said, start):
    """When it was planted, or when the first process began to wait for one that never came."""
    for moments in (
        re.findall(r"planted at ([\d.]+)", said),
        re.findall(r"joins at ([\d.]+)", said),
    ):
        if moments:
            return min(float(moment) for moment in moments)
    return start


def without_launcher(fault, at):
    """The same two processes as a cluster starts them: nobody watches, nobody stops the rest."""
    start = time.monotonic()
    with free_port() as port:
        plan = Plan(2, 1, port, HEARTBEAT, INITIALIZATION, gpus=False)
        both = [
            subprocess.Popen(
                [sys.executable, WORKER, fault, str(at)],
                env=plan.environment(index, os.environ),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            for index in range(2)
        ]
        try:
            exit_status = both[1 - at].wait(timeout=60)
            end = time.monotonic()
        finally:
            for process in both:
                process.kill()
        said = "".join(process.communicate()[0] for process in both)
    return exit_status, end - moment_of_the_fault(said, start)


def ids(fault):
    return f"{fault[0]}-{'all' if fault[1] == -1 else fault[1]}"


@pytest.mark.parametrize("fault", IN_THE_MIDDLE, ids=ids)
def test_a_lost_process_ends_the_launch_within_one_and_a_half_heartbeats_and_is_named(
    fault, outcomes
):
    error, seconds = outcomes[fault[:2]].result()
    assert re.match(fault[2], str(error)), error
    assert error.index == fault[1]
    assert seconds < 1.5 * HEARTBEAT


@pytest.mark.parametrize("fault", AT_THE_START, ids=ids)
def test_one_that_never_comes_ends_the_launch_in_time_and_is_named(fault, outcomes):
    error, seconds = outcomes[fault[:2]].result()
    assert re.match(fault[2], str(error)), error
    assert seconds < INITIALIZATION + 5


@pytest.mark.parametrize("fault", ALONE, ids=ids)
def test_without_a_launcher_the_others_end_by_themselves_in_the_same_time(fault, outcomes):
    exit_status, seconds = outcomes["alone", *fault].result()
    assert exit_status != 0
    assert seconds < (1.5 * HEARTBEAT if fault[0].startswith("SIG") else INITIALIZATION + 5)


RESOLVES = {"here": "127.0.1.1", "lab-7": "10.1.2.3", "127.0.0.1": "127.0.0.1",
            "trainer-0.trainer": "10.8.0.4"}  # fmt: skip


@pytest.mark.parametrize(
    ("machine", "coordinator", "note"),
    [
        ("here", "127.0.0.1:1234", None),
        ("lab-7", "127.0.0.1:1234", "gloo will listen on 10.1.2.3, which lab-7 resolves to: not"),
        ("nameless", "127.0.0.1:1234", "this machine's name, nameless, does not resolve"),
        ("lab-7", "trainer-0.trainer:1234", None),
        ("here", "trainer-0.trainer:1234", "gloo can't be reached from other machines"),
    ],
)
def test_a_line_says_where_gloo_listens_if_that_is_not_where_it_should(
    machine, coordinator, note, monkeypatch
):
    def resolve(name):
        if name not in RESOLVES and not name[0].isdigit():
            raise OSError("no such name")
        return RESOLVES.get(name, name)

    monkeypatch.setattr(network.socket, "gethostname", lambda: machine)
    monkeypatch.setattr(network.socket, "gethostbyname", resolve)
    said = network.note(coordinator)
    assert said is None if note is None else note in said
    local = coordinator.startswith("127.")
    assert network.bind_address(coordinator) == (coordinator if local else None)
