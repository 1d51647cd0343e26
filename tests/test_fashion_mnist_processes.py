"""Many processes, sudden deaths, and folders that this user may not write."""
# ruff: noqa: F811 - the fixture `world` is imported

import contextlib
import dataclasses
import fcntl
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from fashion_mnist_world import (
    HASTY,
    PATIENT,
    Misbehaviour,
    refusing_url,
    server,
    state_of,
    world,  # noqa: F401
)

NOBODY = 65534
IS_ROOT = os.geteuid() == 0
CHILD = Path(__file__).parent / "fashion_mnist_child.py"


def run_children(world, environment=None, **job) -> tuple[list[dict], str]:
    """The outcomes of the children, and all that they wrote to stderr."""
    job = {
        "processes": 1,
        "specs": [dataclasses.astuple(spec) for spec in world.specs],
        "package": str(world.package),
        "limits": dataclasses.asdict(PATIENT),
        "cache": str(world.cache),
        "arguments": {"allow_sample": False},
        **job,
    }
    finished = subprocess.run(
        [sys.executable, "-W", "ignore", str(CHILD), json.dumps(job)],
        env={**os.environ, "TMPDIR": tempfile.gettempdir(), **(environment or {})},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return [json.loads(line) for line in finished.stdout.splitlines()], finished.stderr


def test_thirty_processes_that_start_at_once_fetch_each_file_once(world):
    with server(world.packed, Misbehaviour.slow) as mirror:
        outcomes, said = run_children(world, {"FASHION_MNIST_MIRRORS": mirror.url}, processes=30)
        assert set(mirror.gets.values()) == {1}
        assert len(mirror.gets) == 4
    assert len(outcomes) == 30
    assert all(outcome.get("right") for outcome in outcomes), outcomes
    sources = sorted(outcome["source"] for outcome in outcomes)
    assert sources == [f"cache {world.cache}"] * 29 + [f"download {mirror.url}"]
    assert said.count("downloading") == 1


def test_thirty_processes_without_a_network_wait_for_one_failure_not_thirty(world):
    with server(world.packed, Misbehaviour.never_answers) as mirror:
        environment = {"FASHION_MNIST_MIRRORS": mirror.url}
        hasty = dataclasses.asdict(HASTY)
        outcomes, _ = run_children(world, environment, processes=30, limits=hasty)
        # Thirty times as many, if each asked; a few may start after the first has failed.
        assert mirror.gets.total() <= 3 * HASTY.attempts
    assert len(outcomes) == 30
    assert all("stalled" in outcome["error"] for outcome in outcomes), outcomes


def test_a_later_load_asks_a_server_again_that_failed_before(world):
    environment = {}
    with server(world.packed, Misbehaviour.fails_once) as mirror:
        environment["FASHION_MNIST_MIRRORS"] = mirror.url
        once = {**dataclasses.asdict(PATIENT), "attempts": 1}
        first, _ = run_children(world, environment, limits=once)
        assert "HTTP 503" in first[0]["error"]
        mirror.behave = Misbehaviour.none
        second, _ = run_children(world, environment, limits=once)
    assert second[0]["right"]


def assert_all_repaired(world, deaths):
    assert not any(death["halves"] for death in deaths)
    assert all(death.get("right") for death in deaths), deaths
    assert not list(world.cache.glob(".*.tmp"))


@pytest.mark.parametrize("seed", [1, 2])
def test_sigkill_at_ten_random_moments_leaves_a_cache_that_the_next_load_repairs(seed, world):
    with server(world.packed, Misbehaviour.slow) as mirror:
        environment = {"FASHION_MNIST_MIRRORS": mirror.url}
        deaths, _ = run_children(world, environment, seed=seed, moments=10, steps=[])
    assert len(deaths) == 10
    assert any(death["killed"] for death in deaths)
    assert_all_repaired(world, deaths)


def test_sigkill_at_each_step_of_writing_leaves_a_cache_that_the_next_load_repairs(world):
    steps = [(step, count) for step in ("write", "fsync", "rename") for count in range(1, 9)]
    world.folder("package")
    deaths, _ = run_children(world, seed=0, moments=0, steps=steps)
    assert len(deaths) == len(steps)
    assert all(death["killed"] for death in deaths)
    assert_all_repaired(world, deaths)


def test_a_lock_held_for_ever_is_waited_for_in_bounded_time_and_said(world):
    world.folder("package")
    world.cache.mkdir(parents=True)
    with (world.cache / ".lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        outcomes, said = run_children(world, lock_wait=0.5)
    assert outcomes[0]["right"]
    assert f"waiting for another process that is filling {world.cache}" in said
    assert (
        f"another process has held its lock for 2 s); keeping the data in {world.temporary_cache}"
        in said
    )


@contextlib.contextmanager
def folder_of_another_user(world, name="theirs"):
    """A folder that anyone can read and only root, or nobody at all, can write."""
    # pytest's own folders are closed to other users.
    root = Path(tempfile.mkdtemp(dir="/tmp"))
    try:
        root.chmod(0o755)
        yield root
    finally:
        for path in [root, *root.rglob("*")]:
            if path.is_dir():
                path.chmod(0o755)
        shutil.rmtree(root)


def as_other_user(root: Path, *writable: Path) -> dict:
    """Arguments for a child without root's right to write everywhere."""
    for folder in writable:
        folder.mkdir()
        if IS_ROOT:
            os.chown(folder, NOBODY, NOBODY)
    return {"user": NOBODY} if IS_ROOT else {}


@pytest.mark.parametrize("raw", [False, True], ids=["gz", "raw"])
def test_a_read_only_directory_serves_and_is_left_as_it_is(raw, world):
    with folder_of_another_user(world) as root:
        shutil.copytree(world.folder("files", raw), root / "files")
        user = as_other_user(root, root / "cache", root / "tmp")
        for path in (root / "files").iterdir():
            path.chmod(0o444)
        (root / "files").chmod(0o555)
        before = state_of(root / "files")
        environment = {
            "FASHION_MNIST_DIR": str(root / "files"),
            "XDG_CACHE_HOME": str(root / "cache"),
            "TMPDIR": str(root / "tmp"),
        }
        for _ in range(2):  # verified the first time, recalled the second
            outcomes, said = run_children(
                world, environment, must_not_be_writable=str(root / "files"), **user
            )
            assert outcomes == [{"right": True, "source": f"directory {root / 'files'}"}]
            assert said == ""
        assert state_of(root / "files") == before


def test_a_cache_that_cannot_be_written_gives_way_to_a_temporary_one_that_is_found_again(world):
    world_files = world.packed
    with folder_of_another_user(world) as root, server(world_files) as mirror:
        (root / "xdg").mkdir()
        user = as_other_user(root, root / "tmp")
        (root / "xdg").chmod(0o555)
        environment = {
            "FASHION_MNIST_MIRRORS": mirror.url,
            "XDG_CACHE_HOME": str(root / "xdg"),
            "TMPDIR": str(root / "tmp"),
        }
        job = {"must_not_be_writable": str(root / "xdg"), **user}
        first, said = run_children(world, environment, processes=5, **job)
        assert all(outcome.get("right") for outcome in first), first
        assert set(mirror.gets.values()) == {1}
        assert f"the cache {root / 'xdg'}/jax-course/fashion-mnist cannot be written" in said
        assert "Permission denied" in said
        again, said = run_children(world, environment, **job)
        assert again[0]["source"].startswith(f"cache {root / 'tmp'}/jax-course-fashion-mnist-")
        assert set(mirror.gets.values()) == {1}
        assert said == ""


def test_a_read_only_cache_that_is_full_serves_in_silence(world):
    with folder_of_another_user(world) as root:
        filled = root / "xdg" / "jax-course" / "fashion-mnist"
        shutil.copytree(world.folder("files", raw=True), filled)
        user = as_other_user(root, root / "tmp")
        filled.chmod(0o555)
        environment = {"XDG_CACHE_HOME": str(root / "xdg"), "TMPDIR": str(root / "tmp")}
        outcomes, said = run_children(world, environment, must_not_be_writable=str(filled), **user)
        assert outcomes == [{"right": True, "source": f"cache {filled}"}]
        assert said == ""


def test_offline_every_process_ends_with_the_whole_error(world):
    with refusing_url() as url:
        outcomes, _ = run_children(world, {"FASHION_MNIST_MIRRORS": url}, processes=3)
    assert all("DatasetUnavailable" in outcome["error"] for outcome in outcomes)
