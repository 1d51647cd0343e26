"""The launcher's promises, with programs that need no JAX and so take no time."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time

import pytest
from process_marks import NAME, Mark
from processes import run_python

from course_utils.processes import ProcessFailed, launch
from course_utils.processes.environment import Plan, free_port

ME = "import os, sys, time, signal; me = int(os.environ['JOB_COMPLETION_INDEX'])\n"


def program(code):
    return ["-c", ME + textwrap.dedent(code)]


def run(code, processes=2, devices=1, timeout=20, echo=lambda line: None, **options):
    return launch(program(code), processes, devices, timeout, echo=echo, **options)


def failure(code, **options):
    with pytest.raises(ProcessFailed) as caught:
        run(code, **options)
    return caught.value


@pytest.fixture
def mark(monkeypatch):
    """Whatever a test launches from here must be gone when it has ended."""
    mark = Mark()
    monkeypatch.setenv(NAME, mark.value)
    yield mark
    left = [process for process in mark.alive() if process.pid != os.getpid()]
    assert not left, left


def test_each_process_is_told_who_it_is_and_which_devices_it_has(mark):
    names = ["COORDINATOR_ADDRESS", "PROCESS_COUNT", "JOB_COMPLETION_INDEX", "HEARTBEAT_SECONDS"]
    names += ["INITIALIZATION_SECONDS", "JAX_PLATFORMS", "JAX_NUM_CPU_DEVICES", "XLA_FLAGS"]
    code = f"import json; print(json.dumps({{name: os.environ[name] for name in {names}}}))"
    inherited = {"XLA_FLAGS": "--xla_force_host_platform_device_count=8 --xla_dump_to=/x"}
    finished = run(code, processes=3, devices=2, environment=inherited, heartbeat=7)
    told = [json.loads(process.lines[0]) for process in finished]
    assert [process.index for process in finished] == [0, 1, 2]
    assert [process.exit_status for process in finished] == [0, 0, 0]
    assert [each["JOB_COMPLETION_INDEX"] for each in told] == ["0", "1", "2"]
    assert {each["PROCESS_COUNT"] for each in told} == {"3"}
    assert re.fullmatch(r"127\.0\.0\.1:\d+", told[0]["COORDINATOR_ADDRESS"])
    assert len({each["COORDINATOR_ADDRESS"] for each in told}) == 1
    assert {(each["JAX_PLATFORMS"], each["JAX_NUM_CPU_DEVICES"]) for each in told} == {("cpu", "2")}
    assert told[0]["XLA_FLAGS"] == "--xla_dump_to=/x"
    assert (told[0]["HEARTBEAT_SECONDS"], told[0]["INITIALIZATION_SECONDS"]) == ("7", "60")


def test_output_comes_line_by_line_with_the_process_number_in_front(mark, tmp_path):
    heard = []

    def echo(line):
        heard.append(line)
        if len(heard) == 2:
            (tmp_path / "go").touch()  # they end only if their first lines have come already

    finished = run(
        f"""
        print("first", me)
        while not os.path.exists({str(tmp_path / "go")!r}): time.sleep(0.01)
        print("second", file=sys.stderr)
        """,
        echo=echo,
    )
    assert sorted(heard[:2]) == ["[0] first 0", "[1] first 1"]
    assert sorted(heard[2:]) == ["[0] second", "[1] second"]
    assert finished[1].lines == ("first 1", "second")


def test_lines_go_to_standard_output_unless_told_otherwise(mark, capsys):
    launch(["-c", "print('hello')"], 1, 1, 20)
    assert capsys.readouterr().out == "[0] hello\n"


def test_a_failure_names_the_process_its_exit_status_and_its_last_lines_and_ends_the_others(mark):
    start = time.monotonic()
    error = failure("if me == 1: print('the reason'); sys.exit(7)\ntime.sleep(60)", processes=3)
    assert time.monotonic() - start < 5
    assert str(error).startswith("process 1 of 3 ended with exit status 7 after ")
    assert str(error).endswith("The last lines of process 1:\n[1] the reason")
    assert error.index == 1
    assert [process.exit_status for process in error.finished] == [None, 7, None]


def test_a_failure_by_a_signal_is_named_by_it(mark):
    error = failure("if me == 0: os.kill(os.getpid(), signal.SIGKILL)\ntime.sleep(60)")
    assert "process 0 of 2 was ended by SIGKILL after " in str(error)
    assert "out of memory" in str(error)
    assert "It said nothing." in str(error)


def test_the_one_that_died_of_another_is_not_called_the_cause(mark):
    error = failure(
        """
        if me == 0: print("Gloo all-reduce failed: Connection closed by peer"); sys.exit(1)
        time.sleep(0.1); print("the reason"); sys.exit(3)
        """
    )
    assert str(error).startswith("process 1 of 2 ended with exit status 3")


def test_time_that_is_up_ends_them_all_and_names_the_most_silent_first(mark):
    start = time.monotonic()
    error = failure("if me == 0: sys.exit()\nwhile me == 2: print('.', flush=True)\ntime.sleep(60)",
                    processes=3, timeout=1.5)  # fmt: skip
    assert 1.5 <= time.monotonic() - start < 4
    assert re.match(
        r"not finished after 1.5 s: process 1 \(silent for 1.\d s\), "
        r"process 2 \(silent for 0.\d s\) of 3.",
        str(error),
    )


@pytest.mark.parametrize("flood", ["print('x' * 200)", "print('x' * 200, end='')"])
def test_a_flood_keeps_no_failure_from_being_seen_and_no_memory(mark, flood):
    heard = []
    error = failure(
        f"while me == 0: {flood}\ntime.sleep(1); print('last words'); sys.exit(5)",
        echo=heard.append,
    )
    assert str(error).startswith("process 1 of 2 ended with exit status 5")
    assert str(error).endswith("[1] last words")
    assert 0 < len(error.finished[0].lines) <= 1000
    assert sum(line.startswith("[0] ") for line in heard) <= 501
    assert "[1] last words" in heard
    assert all(len(line) < 5000 for line in heard)


def test_a_long_output_is_cut_and_says_so(mark):
    heard = []
    finished = run("for i in range(2000): print(i)", processes=1, echo=heard.append)
    assert heard[499:] == ["[0] 499", "[0] (it says a lot: the rest is not shown)"]
    assert finished[0].lines[-1] == "1999"
    assert len(finished[0].lines) == 1000


def test_bytes_that_are_no_text_do_no_harm(mark):
    finished = run(r"sys.stdout.buffer.write(b'\xff\x00ok\n')", processes=1)
    assert finished[0].lines[0].endswith("ok")


def test_what_a_process_leaves_behind_is_ended_and_not_waited_for(mark):
    start = time.monotonic()
    child = (
        "import subprocess; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])"
    )
    run(child)
    assert time.monotonic() - start < 5


def test_a_process_stopped_for_a_heartbeat_is_named(mark):
    start = time.monotonic()
    error = failure("if me == 1: os.kill(os.getpid(), signal.SIGSTOP)\ntime.sleep(60)", heartbeat=1)
    assert 1 <= time.monotonic() - start < 1.5 + 1
    assert str(error).startswith("process 1 of 2 is stopped (SIGSTOP) and has not moved for 1.")


def test_a_process_that_moves_again_within_a_heartbeat_is_left_alone(mark):
    code = """
        import subprocess
        if me == 1:
            subprocess.Popen(["sh", "-c", f"sleep 0.5; kill -CONT {os.getpid()}"])
            os.kill(os.getpid(), signal.SIGSTOP)
    """
    assert [process.exit_status for process in run(code, heartbeat=3)] == [0, 0]


@pytest.mark.parametrize("wrong", [{"processes": 0}, {"devices": 0}, {"timeout": 0},
                                   {"heartbeat": -1}, {"initialization_timeout": 0}])  # fmt: skip
def test_numbers_that_make_no_sense_are_refused_by_name(wrong):
    name = {"devices": "devices_per_process"}.get(*wrong, *wrong)
    with pytest.raises(ValueError, match=f"launch needs {name} > 0"):
        run("pass", **wrong)


def test_gpus_are_dealt_out_in_order_and_too_few_are_refused():
    plan = Plan(2, 2, 1234, 10, 60, gpus=True)
    dealt = [plan.environment(i, {"CUDA_VISIBLE_DEVICES": "3,1,0,2"}) for i in range(2)]
    assert [each["CUDA_VISIBLE_DEVICES"] for each in dealt] == ["3,1", "0,2"]
    assert dealt[0]["JAX_PLATFORMS"] == "cuda"
    assert plan.environment(1, {})["CUDA_VISIBLE_DEVICES"] == "2,3"
    with pytest.raises(ValueError, match="need 4; CUDA_VISIBLE_DEVICES=0 shows 1"):
        plan.environment(0, {"CUDA_VISIBLE_DEVICES": "0"})


def test_the_port_is_on_loopback_and_nobody_elses_while_a_launch_runs():
    with free_port() as port, free_port() as other, socket.socket() as rival:
        assert port != other
        with pytest.raises(OSError, match="in use"):
            rival.bind(("127.0.0.1", port))


def test_to_launch_needs_no_jax():
    result = run_python("import sys, course_utils.processes; assert 'jax' not in sys.modules")
    assert result.returncode == 0, result.stderr


def test_several_launches_at_once_and_from_threads_do_not_meet(mark):
    ports = []

    def one():
        code = "print(os.environ['COORDINATOR_ADDRESS']); time.sleep(0.3)"
        ports.extend(process.lines[0] for process in run(code))

    threads = [threading.Thread(target=one) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ports) == 6
    assert len(set(ports)) == 3


def test_launching_from_a_process_where_jax_runs_warns_of_no_fork():
    result = run_python(
        """
        import warnings
        import jax
        jax.numpy.ones(3).sum().block_until_ready()
        warnings.simplefilter("error")
        from course_utils.processes import launch
        launch(["-c", "print('child')"], 2, 1, 30)
        """
    )
    assert result.returncode == 0, result.stderr
    assert sorted(result.stdout.split("\n")) == ["", "[0] child", "[1] child"]
    assert "fork" not in result.stderr


STUBBORN = program(
    """
    for name in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP): signal.signal(name, signal.SIG_IGN)
    print("up", flush=True)
    if me == 1: os.kill(os.getpid(), signal.SIGSTOP)
    time.sleep(60)
    """
)


def command_line(argv, *options, **environment):
    return subprocess.Popen(
        [sys.executable, "-m", "course_utils.processes", *options, "--", *argv],
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize(
    ("name", "exit_status"), [("SIGINT", 130), ("SIGTERM", 143), ("SIGHUP", 129), ("SIGKILL", -9)]
)
def test_no_process_outlives_a_launcher_that_a_signal_ends(name, exit_status):
    mark = Mark()
    with command_line(STUBBORN, **mark.environment) as parent:
        for _ in range(2):
            assert parent.stdout.readline().endswith("up\n")
        assert len(mark.alive()) == 4  # the launcher, its guard and two processes
        parent.send_signal(getattr(signal, name))
        parent.wait(timeout=5)
        left_at_once = mark.alive()
        assert parent.returncode == exit_status
        if name == "SIGINT":
            assert "stopped by Ctrl-C" in parent.stderr.read()
    assert name == "SIGKILL" or not left_at_once
    assert not mark.wait_until_gone()


def test_a_launcher_killed_at_any_moment_leaves_nothing():
    mark = Mark()
    for delay in (0.02, 0.05, 0.1, 0.15, 0.2, 0.3):
        with command_line(STUBBORN, "--processes", "4", **mark.environment) as parent:
            time.sleep(delay)
            parent.kill()
    assert not mark.wait_until_gone()


def test_an_interrupted_notebook_gets_its_interrupt_and_no_process_stays(mark):
    def interrupt(line):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        launch(STUBBORN, 2, 1, 20, echo=interrupt)


def test_the_command_line_tells_success_failure_and_misuse_apart():
    with command_line(program("print('fine')"), "--processes", "1") as good:
        assert good.communicate() == ("[0] fine\n", "")
    with command_line(program("sys.exit(me * 9)"), "--processes", "2") as bad:
        _, said = bad.communicate()
    with command_line([]) as misused:
        _, usage = misused.communicate()
    assert (good.returncode, bad.returncode, misused.returncode) == (0, 1, 2)
    assert said.startswith("error: process 1 of 2 ended with exit status 9")
    assert "say after -- what each process runs" in usage
