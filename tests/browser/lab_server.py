"""JupyterLab as `make lab` starts it, for a test: its own home, its own port, and it leaves nothing."""

import json
import os
import shlex
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from course_utils.headless.family import Family
from course_utils.processes.environment import LOOPBACK
from course_utils.processes.group import Group

COURSE = Path(__file__).resolve().parents[2]
START_SECONDS, STOP_SECONDS = 60, 20
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))
# Every cell is in the page, also those that one would have to scroll to: all is to be measured.
SETTINGS = {
    "@jupyterlab/notebook-extension/tracker": {"windowingMode": "none"},
    "@jupyterlab/apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
}
# What a user of the machine, or the suite itself, has set; `make lab` in a new terminal has none.
NOT_OURS = (
    "JUPYTER",
    "JPY_",
    "IPYTHON",
    "XDG_",
    "JAX_PLATFORMS",
    "JAX_NUM_CPU",
    "XLA_",
    "EXPECT_",
    "JAX_COURSE_",
)


@dataclass(frozen=True)
class Server:
    """A running JupyterLab: where it answers, and what opens it."""

    url: str
    token: str
    pid: int
    home: Path
    root: Path

    def ask(self, path: str, token: str = "", method: str = "GET") -> tuple[int, bytes]:
        """Status and body of a request, sent with `token` unless it is empty."""
        headers = {"Authorization": f"token {token}"} if token else {}
        request = urllib.request.Request(self.url + path, headers=headers, method=method)
        try:
            with DIRECT.open(request, timeout=30) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    def kernels(self) -> list[dict]:
        """The kernels that run now."""
        return json.loads(self.ask("api/kernels", self.token)[1])

    def end_kernels(self) -> None:
        """Ends every kernel, as a user does who closes and shuts down all notebooks."""
        for kernel in self.kernels():
            self.ask(f"api/kernels/{kernel['id']}", self.token, "DELETE")


@contextmanager
def jupyter_lab(place: Path, root: Path) -> Iterator[Server]:
    """Start JupyterLab on a folder of lessons; stop it, its kernels and their children at the end.

    A launcher that is interrupted passes through here, too; one that is killed is missed by the
    guard of the group, which then kills the server, and kernels end without their server.

    Args:
        place: an empty folder for the home, the settings and the log of the server.
        root: the folder that is served, with `notebooks` in it.
    """
    family = Family()
    environment = _environment(family, place / "home")
    log = place / "server.log"
    command = _command(root)
    try:
        with Group() as group:
            into_log = f"exec {shlex.join(command)} > {shlex.quote(str(log))}"
            server = group.start(["sh", "-c", into_log + " 2>&1"], environment)
            try:
                yield _answering(server, place / "home", root, log)
            finally:
                _stop(server)
    finally:
        family.kill()


def _environment(family: Family, home: Path) -> dict[str, str]:
    """A new user's, but for what keeps the tests fast and off the network."""
    settings = home / ".jupyter/lab/user-settings"
    for name, values in SETTINGS.items():
        file = settings / f"{name}.jupyterlab-settings"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(values))
    kept = {name: value for name, value in os.environ.items() if not name.startswith(NOT_OURS)}
    chosen = {"HOME": str(home), "FASHION_MNIST_SOURCES": "directory,cache,package,sample"}
    if platforms := os.environ.get("JAX_PLATFORMS"):
        chosen["JAX_PLATFORMS"] = platforms
    return family.environment(kept | chosen)


def _command(root: Path) -> list[str]:
    """What `make lab` runs, with this Python, on another root."""
    options = ["--no-browser", "--allow-root", "--LabApp.expose_app_in_browser=True"]
    asked = ["lab", f"CURDIR={root}", f"PORT={_free_port()}", f"LAB_OPTIONS={' '.join(options)}"]
    plain = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    said = subprocess.run(
        ["make", "--dry-run", "--no-print-directory", *asked],
        cwd=COURSE,
        env=plain,
        capture_output=True,
        text=True,
        check=True,
    )
    program, *arguments = shlex.split(said.stdout.splitlines()[-1])
    assert program.endswith("/jupyter")
    return [str(Path(sys.executable).with_name("jupyter")), *arguments]


def _free_port() -> int:
    """A port nobody listens on now; JupyterLab takes the next one if it is taken meanwhile."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return probe.getsockname()[1]


def _answering(server: subprocess.Popen, home: Path, root: Path, log: Path) -> Server:
    deadline = time.monotonic() + START_SECONDS
    runtime = home / ".local/share/jupyter/runtime"
    while server.poll() is None and time.monotonic() < deadline:
        for file in runtime.glob("jpserver-*.json"):
            with suppress(ValueError, urllib.error.URLError):  # half written, or not yet listening
                said = json.loads(file.read_text())
                found = Server(said["url"], said["token"], server.pid, home, root)
                if found.ask("api/status", found.token)[0] == 200:
                    return found
        time.sleep(0.1)
    raise RuntimeError(f"JupyterLab did not start:\n{log.read_text()[-3000:]}")


def _stop(server: subprocess.Popen) -> None:
    """Let it end its kernels; what doesn't end is killed with the group."""
    server.terminate()
    with suppress(subprocess.TimeoutExpired):
        server.wait(STOP_SECONDS)
