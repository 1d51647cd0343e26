"""The second run of a lesson reads what the first compiled; a cache in trouble never disturbs one."""

import signal
import subprocess
import sys
import textwrap

import pytest
from processes import clean_environment, run_python

from course_utils import compilation_cache

# Says what was found in the cache, and the result of a small program and a larger one.
LESSON = """
    import jax, jax.numpy as jnp
    from course_utils import compilation_cache
    from course_utils.devices import request_devices
    hits = []
    jax.monitoring.register_event_listener(
        lambda event, **_: hits.append(event) if event.endswith("/cache_hits") else None
    )
    request_devices()
    print(jax.config.jax_compilation_cache_dir)
    step = jax.jit(lambda w, x: jnp.tanh(x @ w).sum())
    print(float(jax.grad(step)(jnp.ones((4, 3)), jnp.ones((2, 4)))[0, 0]))
    print(len(hits))
"""
OWN = ("JAX_COMPILATION_CACHE_DIR", "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS")
OWN += ("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "JAX_ENABLE_COMPILATION_CACHE")


@pytest.fixture(autouse=True)
def as_a_participant_has_it(monkeypatch, tmp_path):
    for name in OWN:  # the suite's own cache
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def lesson(**environment):
    """Folder, result and hits of a run in a process of its own, which must print nothing else."""
    ran = run_python(LESSON, **environment)
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr == ""
    *_, folder, result, hits = ran.stdout.splitlines()
    return folder, result, int(hits)


def entries(folder):
    return {path.name.removesuffix("-cache") for path in folder.glob("*-cache")}


@pytest.fixture
def filled(tmp_path):
    """The folder after a first run, with its result."""
    folder, result, hits = lesson()
    assert hits == 0
    (found,) = (tmp_path / "cache" / "jax-course" / "compiled").iterdir()
    assert str(found) == folder
    assert len(entries(found)) >= 2
    return found, result


def test_a_second_run_reads_what_the_first_compiled(filled):
    folder, result = filled
    before = entries(folder)
    assert lesson() == (str(folder), result, len(before))
    assert entries(folder) == before


def test_jax_own_switch_turns_it_off(tmp_path):
    folder, _, hits = lesson(JAX_ENABLE_COMPILATION_CACHE="false")
    assert (folder, hits) == ("None", 0)
    assert not (tmp_path / "cache").exists()


def test_a_folder_that_the_user_chose_stays_chosen(tmp_path):
    mine = tmp_path / "mine"
    folder, _, _ = lesson(JAX_COMPILATION_CACHE_DIR=str(mine))
    assert folder == str(mine)
    assert not (tmp_path / "cache").exists()


def test_a_folder_that_cannot_be_made_costs_nothing_but_time(tmp_path):
    (tmp_path / "cache").write_text("a file where the folder should be")
    folder, result, hits = lesson()
    assert (folder, hits) == ("None", 0)
    assert float(result) == pytest.approx(2 * (1 - 0.9993293**2), abs=1e-4)


@pytest.mark.parametrize("suffix", ["-cache", "-atime"])
def test_an_entry_that_a_killed_process_left_half_written_is_replaced(filled, suffix):
    folder, result = filled
    before = entries(folder)
    for path in folder.glob(f"*{suffix}"):
        path.unlink()
    assert lesson() == (str(folder), result, 0)
    assert entries(folder) == before
    assert lesson() == (str(folder), result, len(before))


def test_a_damaged_program_is_compiled_anew(filled):
    folder, result = filled
    for path in folder.glob("*-cache"):
        path.write_bytes(path.read_bytes()[:40])
    assert lesson() == (str(folder), result, 0)


def test_a_folder_that_vanishes_in_the_middle_disturbs_nobody(tmp_path):
    gone = textwrap.dedent(LESSON) + textwrap.dedent("""
        import shutil
        shutil.rmtree(jax.config.jax_compilation_cache_dir)
        print(float(jax.jit(lambda x: x * 7)(6.0)))
    """)
    ran = run_python(gone)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.splitlines()[-1] == "42.0"


def test_the_folder_stays_within_its_bound(tmp_path):
    ran = run_python("""
        import pathlib, jax, jax.numpy as jnp
        from course_utils import compilation_cache
        compilation_cache.MAX_BYTES = 20_000
        folder = compilation_cache.keep_compiled_programs()
        for n in range(1, 30):
            jax.jit(lambda x: jnp.sin(x) * n)(jnp.ones(n))
        sizes = [path.stat().st_size for path in folder.glob("*-cache")]
        print(len(sizes), sum(sizes))
    """)
    assert (ran.returncode, ran.stderr) == (0, "")
    count, size = map(int, ran.stdout.split())
    assert 1 < count < 29
    assert size <= 20_000


def test_kernels_that_start_together_share_it(tmp_path):
    code = textwrap.dedent(LESSON)
    running = [
        subprocess.Popen(
            [sys.executable, "-c", code],
            env=clean_environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    printed = [process.communicate(timeout=120) for process in running]
    assert [process.returncode for process in running] == [0] * 4, printed
    assert {errors for _, errors in printed} == {""}
    assert len({out.splitlines()[-2] for out, _ in printed}) == 1
    assert lesson()[2] >= 2


def test_a_kernel_killed_while_it_compiles_leaves_a_folder_that_works(tmp_path):
    endless = """
        import jax, jax.numpy as jnp
        from course_utils.compilation_cache import keep_compiled_programs
        keep_compiled_programs()
        for n in range(1, 10_000):
            jax.jit(lambda x: jnp.sin(x) * n)(jnp.ones(n))
            print(n, flush=True)
    """
    for kept in (2, 5, 9):
        with subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(endless)],
            env=clean_environment(),
            stdout=subprocess.PIPE,
        ) as process:
            for _ in range(kept):
                process.stdout.readline()
            process.send_signal(signal.SIGKILL)
    lesson()
    assert lesson()[2] >= 2


def test_machines_with_other_processors_do_not_share_programs(monkeypatch):
    here = compilation_cache._processor()
    assert compilation_cache._processor() == here
    monkeypatch.setattr(compilation_cache.platform, "machine", lambda: "another")
    assert compilation_cache._processor() != here
