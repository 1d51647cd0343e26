"""The checked-out course as an archive that fits into a ConfigMap."""

import gzip

from deploy.cluster.programs import REPOSITORY, answer, ended, need
from deploy.cluster.talk import Stop, say

BUILD = REPOSITORY / "deploy/.build"
LIMIT = 900_000  # bytes; a ConfigMap takes 1 MiB, and the course should not come near it
# What participants don't need in the pod. The data set is fetched there, whole, in seconds.
LEFT_OUT = (
    "course_utils/fashion_mnist/sample",
    "benchmarks",
    "tests",
    "deploy",
    "terraform",
    "requirements-cpu.txt",
    ".ci",
    ".github",
)


def archive() -> bytes:
    """The course at HEAD as tar.gz; git writes the commit into it."""
    need("git")
    checkout = "Run this in a git checkout of the course, not in an unpacked archive."
    if answer(["git", "status", "--porcelain"], checkout).strip():
        say("  note: uncommitted changes stay here; the committed version is sent")
    tar = REPOSITORY / "deploy/.build/course.tar"
    tar.parent.mkdir(exist_ok=True)
    without = [f":(exclude){path}" for path in LEFT_OUT]
    answer(
        ["git", "archive", "--format=tar", f"--output={tar}", "HEAD", "--", ".", *without], checkout
    )
    packed = gzip.compress(tar.read_bytes(), mtime=0)
    tar.unlink()
    if len(packed) > LIMIT:
        raise Stop(
            f"the course is {len(packed):,} bytes, more than {LIMIT:,}",
            "Leave something out of it: LEFT_OUT in deploy/cluster/course.py.",
        )
    return packed


def commit() -> str:
    """The checked-out commit."""
    done = ended(["git", "rev-parse", "HEAD"])
    if done.returncode:
        raise Stop("this is no git checkout", "Clone the course with git, and run this there.")
    return done.stdout.strip()
