"""Memory, disk, shared memory, the data set and the port of the labs."""

import contextlib
import io
import os
import shutil
import socket
import tempfile
from pathlib import Path

import psutil

from course_utils.check.packages import ROOT
from course_utils.check.row import Row

GB = 2**30
PORT = 8884  # where the course's JupyterLab listens in the cluster
CGROUP = Path("/sys/fs/cgroup")
DIR_IN_VAIN = "Fashion-MNIST: FASHION_MNIST_DIR="  # how the loader says that it is of no use


def memory() -> Row:
    """Memory that a lesson can still have, the limit of a container included."""
    free = psutil.virtual_memory().available
    limit = _container_room()
    free = min(free, limit) if limit is not None else free
    found = f"{free / GB:.1f} GB free" + (" in this container" if limit == free else "")
    cure = "Close other kernels, or take a machine with more memory."
    return Row(
        "FAIL" if free < 2 * GB else "WARN" if free < 4 * GB else "OK", "Memory", found, cure
    )


def _container_room() -> int | None:
    try:
        limit = (CGROUP / "memory.max").read_text().strip()
        used = (CGROUP / "memory.current").read_text().strip()
    except OSError:
        return None
    return int(limit) - int(used) if limit.isdecimal() else None


def disk() -> Row:
    """Room for runs beside the course, and for temporary files."""
    places = {"here": ROOT, "in the temporary folder": Path(tempfile.gettempdir())}
    free = {where: shutil.disk_usage(path).free for where, path in places.items()}
    where = min(free, key=free.__getitem__)
    found = f"{free[where] / GB:.1f} GB free {where}"
    cure = "Delete old folders in runs/; make clean deletes them all."
    least = free[where]
    return Row("FAIL" if least < GB else "WARN" if least < 5 * GB else "OK", "Disk", found, cure)


def shared_memory(place: str = "/dev/shm") -> Row:
    """Shared memory, through which GPUs (NCCL) and processes of one machine talk."""
    name, path = "Shared memory", Path(place)
    if os.name != "posix" or not Path("/proc").is_dir():
        return Row("OK", name, "this system has no /dev/shm, and needs none")
    cure = "In Docker: --shm-size=1g. In Kubernetes: mount an emptyDir with medium: Memory there."
    if not path.is_dir() or not os.access(path, os.W_OK):
        return Row("FAIL", name, f"{place} is missing, or can't be written", cure)
    free = shutil.disk_usage(path).free
    found = f"{free / GB:.2f} GB free in {place}"
    return Row("WARN" if free < 100 * 2**20 else "OK", name, found, cure)


def dataset() -> Row:
    """Where a lesson would take Fashion-MNIST from."""
    from course_utils import fashion_mnist

    cure = "make data fetches and verifies the whole; it says what else would do."
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):  # what it says there, this row says too
            data = fashion_mnist.load()
    except Exception as error:
        return Row("FAIL", "Data set", str(error).splitlines()[0], cure)
    found = f"{len(data.train_images):,} + {len(data.test_images):,} images, {data.source}"
    # It also says what is no trouble, such as a download: only a setting in vain is a warning.
    vain = [line for line in said.getvalue().splitlines() if line.startswith(DIR_IN_VAIN)]
    if vain:
        found = f"{found}; {vain[0].removeprefix('Fashion-MNIST: ')}"
        cure = f"Correct FASHION_MNIST_DIR, or unset it. {'' if data.complete else cure}".strip()
    return Row("OK" if data.complete and not vain else "WARN", "Data set", found, cure)


def port(number: int = PORT) -> Row:
    """The port of the labs is free, or this course's own JupyterLab has it."""
    name = f"Port {number}"
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", number))
            return Row("OK", name, "free")
        except OSError as error:
            reason = error.strerror or str(error)
    holder = _holder(number)
    if holder and _is_ours(holder):
        return Row("OK", name, "held by this course's JupyterLab")
    who = f"process {holder.pid} ({holder.name()})" if holder else f"somebody else ({reason})"
    cure = "Stop that program; the labs' JupyterLab can't start while it holds the port."
    return Row("FAIL", name, f"held by {who}", cure)


def _holder(number: int) -> psutil.Process | None:
    try:
        for connection in psutil.net_connections("tcp"):
            listening = connection.status == psutil.CONN_LISTEN and connection.pid
            if listening and connection.laddr.port == number:
                return psutil.Process(connection.pid)
    except psutil.Error:  # macOS shows a user nobody else's
        pass
    return None


def _is_ours(holder: psutil.Process) -> bool:
    """Whether it is the server that runs us, or a Jupyter server at work in this folder."""
    try:
        if holder.pid in {parent.pid for parent in psutil.Process().parents()}:
            return True
        words, place = " ".join(holder.cmdline()), Path(holder.cwd())
    except psutil.Error:
        return False
    return "jupyter" in words and (place == ROOT or ROOT in place.parents or str(ROOT) in words)
