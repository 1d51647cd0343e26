"""What runs in the pod: bring the lessons, get the environment ready, then become JupyterLab.

    start.py serve                 JupyterLab on the workspace
    start.py run OUTPUT COMMAND... a Python command on the course as it was sent; then wait, so that
                                   its results, in OUTPUT, can be fetched
    start.py unpack                bring the lessons only

Runs on the standard library of the image's Python. Says what it does in lines that begin with
"course:", and what to do when it can't.
"""

import contextlib
import errno
import gzip
import os
import secrets
import subprocess
import sys
import time
from pathlib import Path

import environment
import lessons
from telling import Trouble, say

MOUNT = Path(os.environ.get("COURSE_MOUNT", "/etc/jax-course"))
WORKSPACE = Path(os.environ.get("WORKSPACE", "/workspace"))
KEPT = WORKSPACE / ".course"  # ours: environments and the record of what was brought
SCRATCH = Path(os.environ.get("TMPDIR", "/tmp"))
NO_LESSONS = """# No lessons yet

JupyterLab and the environment of the course are ready; the lessons are not here. Whoever made this
cluster brings them, from a checkout of the course, with

    make deploy

which sends the checked-out version and starts this server again. Files of your own stay.
"""


def serve() -> None:
    """Bring the lessons, get the environment, become JupyterLab. Does not return."""
    archive = course_archive()
    bring_lessons(archive)
    python = environment.ready(KEPT, lock(), WORKSPACE if archive else None)
    page = "notebooks" if (WORKSPACE / "notebooks").is_dir() else lessons.FIRST_PAGE
    say(f"starting JupyterLab on {WORKSPACE}")
    arguments = [
        "-m",
        "jupyterlab",
        f"--config={MOUNT / 'pod/jupyter_server_config.py'}",
        f"--ServerApp.root_dir={WORKSPACE}",
        f"--LabApp.default_url=/lab/tree/{page}",
    ]
    os.chdir(WORKSPACE)
    variables = {**os.environ, **on_path(python), "JUPYTER_TOKEN": token()}
    os.execve(python, [str(python), *arguments], variables)


def run(output: Path, command: list[str]) -> int:
    """Run Python with `command` on the course as it was sent, apart from anybody's edits.

    Then wait until somebody has fetched `output`: the files of a Job go with its pod.
    """
    archive = course_archive()
    if archive is None:
        raise Trouble("no course was sent to this cluster", "Run `make deploy` first.")
    untouched = SCRATCH / "course"
    lessons.unpack(archive, untouched)
    python = environment.ready(KEPT, lock(), course=None)
    output.mkdir(parents=True, exist_ok=True)
    # The environment finds course_utils in the workspace; this comes before it.
    variables = {**os.environ, **on_path(python), "PYTHONPATH": str(untouched)}
    status = subprocess.run([python, *command], cwd=untouched, env=variables).returncode
    wait_for_collection(status)
    return status


def wait_for_collection(status: int) -> None:
    """Wait, for a bounded time, until the file `collected` appears. Only process 0 has results."""
    if os.environ.get("JOB_COMPLETION_INDEX", "0") != "0":
        return
    seconds = int(os.environ.get("COLLECT_SECONDS", "600"))
    say(f"finished with status {status}; the results wait {seconds} s to be fetched")
    until = time.monotonic() + seconds
    while time.monotonic() < until and not (SCRATCH / "collected").exists():
        time.sleep(1)


def bring_lessons(archive: Path | None) -> None:
    """Update the workspace. A full volume keeps nobody from opening JupyterLab to make room."""
    try:
        if archive:
            lessons.update(archive, WORKSPACE, KEPT)
        elif not (WORKSPACE / "notebooks").exists():
            lessons.first_page(NO_LESSONS, WORKSPACE, KEPT)
            say("no lessons were sent to this cluster: `make deploy` brings them")
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        say(f"WARNING: {WORKSPACE} is full, so the lessons were not brought up to date.")
        say("Delete files in JupyterLab, then start again. Nothing that is there was changed.")


def course_archive() -> Path | None:
    """The course as it was sent, if it was."""
    archive = MOUNT / "course/course.tar.gz"
    return archive if archive.exists() else None


def lock() -> bytes:
    """The locked packages: those of the course, or those that came with the manifest."""
    archive, alone = course_archive(), MOUNT / "lock/requirements.txt.gz"
    if archive:
        return lessons.read(archive, "requirements.txt")
    if alone.exists():
        return gzip.decompress(alone.read_bytes())
    raise Trouble("neither a course nor a list of packages was sent", "Run `make deploy`.")


def token() -> str:
    """JupyterLab's token, which is never printed: the Secret's, or one made here and kept."""
    if given := os.environ.get("JUPYTER_TOKEN", "").strip():
        return given
    path = KEPT / "token"
    try:
        if not path.exists():
            KEPT.mkdir(parents=True, exist_ok=True)
            with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                file.write(secrets.token_hex(24))
        kept = path.read_text()
    except OSError as error:
        raise Trouble(
            f"no token was given, none can be kept: {error}", "Run `make deploy`."
        ) from error
    say(f"no Secret holds a token; the one made here is in {path}")
    return kept


def on_path(python: Path) -> dict[str, str]:
    """Variables with which terminals and kernels find the environment's programs first."""
    return {
        "PATH": f"{python.parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        "VIRTUAL_ENV": str(python.parent.parent),
    }


def main(arguments: list[str]) -> int:
    """Do what the arguments ask for; returns the exit status."""
    with contextlib.suppress(OSError):  # on a full volume JupyterLab must still come up
        Path.home().mkdir(parents=True, exist_ok=True)
    match arguments:
        case ["serve"]:
            serve()
        case ["run", output, *command] if command:
            return run(Path(output), command)
        case ["unpack"]:
            bring_lessons(course_archive())
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except Trouble as trouble:
        say(f"ERROR: {trouble}")
        say(f"What to do: {trouble.cure}")
        sys.exit(1)
