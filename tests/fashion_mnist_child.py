"""Load in many processes, as many kernels do: forked, so that thirty cost no thirty imports.

Run as a script of its own (a fork of pytest would carry its threads and whatever other tests
have started); the job is JSON in argv[1], and each child prints its outcome as one JSON line.
"""

import io
import itertools
import json
import os
import random
import signal
import sys
import time
from pathlib import Path

import filelock  # noqa: F401 - imported before a child gives up its rights
import requests  # noqa: F401
import tqdm  # noqa: F401

from course_utils.fashion_mnist import cache, download, idx, load, settings
from course_utils.fashion_mnist.make_sample import to_idx


def outcome(job: dict) -> dict:
    if job.get("user"):
        os.setgroups([])
        os.setgid(job["user"])
        os.setuid(job["user"])
    if path := job.get("must_not_be_writable"):
        assert not os.access(path, os.W_OK), f"{path} can be written: the test would be void"
    try:
        data = load(**job.get("arguments", {}))
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}
    arrays = (data.train_images, data.train_labels, data.test_images, data.test_labels)
    right = all(
        hash_of(to_idx(array)) == spec.sha256 for array, spec in zip(arrays, idx.FILES, strict=True)
    )
    return {"right": right, "source": data.source}


def hash_of(content: bytes) -> str:
    return idx.hashlib.sha256(content).hexdigest()


def fork(job: dict, gate: tuple[int, int] | None = None, die_at: list | None = None) -> int:
    child = os.fork()
    if child:
        return child
    try:
        if gate:
            os.close(gate[1])
            os.read(gate[0], 1)  # returns for all children together, when the parent closes too
        if die_at:
            arrange_death(*die_at)
        result = json.dumps(outcome(job)).encode() + b"\n"
        if not job.get("quiet"):
            os.write(1, result)  # one write: lines of several children do not mix
    finally:
        os._exit(0)


def arrange_death(step: str, count: int) -> None:
    """SIGKILL this process in the middle of its `count`-th write, or before that fsync or rename."""
    counter = itertools.count(1)
    open_path = Path.open

    class DyingFile(io.FileIO):
        def write(self, content):
            super().write(content[: len(content) // 2])
            os.kill(os.getpid(), signal.SIGKILL)

    def open_dying(path, mode="r"):
        if mode == "wb" and next(counter) == count:
            return DyingFile(path, mode)
        return open_path(path, mode)

    def die_before(real):
        def deadly(*arguments):
            if next(counter) == count:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*arguments)

        return deadly

    if step == "write":
        Path.open = open_dying
    elif step == "fsync":
        os.fsync = die_before(os.fsync)
    else:
        Path.replace = die_before(Path.replace)


def half_written(folder: Path) -> list[str]:
    """Files under their final names that are not whole."""
    return [
        spec.name
        for spec in idx.FILES
        if (folder / spec.name).exists()
        and hash_of((folder / spec.name).read_bytes()) != spec.sha256
    ]


def at_once(job: dict) -> None:
    gate = os.pipe()
    children = [fork(job, gate) for _ in range(job["processes"])]
    os.close(gate[1])
    for child in children:
        os.waitpid(child, 0)


def killed(job: dict) -> None:
    """Kill a child at a random moment of its load, or at a given step; let the next one repair."""
    begin = time.monotonic()
    os.waitpid(fork({**job, "quiet": True}), 0)
    whole_load = time.monotonic() - begin
    draw = random.Random(job["seed"])
    moments = [("moment", draw.uniform(0, whole_load)) for _ in range(job["moments"])]
    for step, when in [*moments, *job["steps"]]:
        for file in Path(job["cache"]).glob("*ubyte*"):
            file.unlink()
        child = fork({**job, "quiet": True}, die_at=None if step == "moment" else [step, when])
        if step == "moment":
            time.sleep(when)
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        death = {"killed": os.WIFSIGNALED(status), "halves": half_written(Path(job["cache"]))}
        os.write(1, json.dumps({**death, **outcome(job)}).encode() + b"\n")


if __name__ == "__main__":
    job = json.loads(sys.argv[1])
    idx.FILES = tuple(idx.FileSpec(name, tuple(shape), sha) for name, shape, sha in job["specs"])
    settings.PACKAGE_FOLDER = Path(job["package"])
    settings.MIRRORS = ()
    download.LIMITS = download.Limits(**job["limits"])
    cache.LOCK_WAIT_S, cache.LOCK_PATIENCE_S = job.get("lock_wait", 60.0), 1.0
    (killed if "steps" in job else at_once)(job)
