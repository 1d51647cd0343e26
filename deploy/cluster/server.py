"""`make deploy`, `make open`, `make stop`: the server with the course."""

import socket
import subprocess
import time

from deploy.cluster import course, idle, manifests, token_secret
from deploy.cluster.programs import REPOSITORY, answer, do, setting
from deploy.cluster.settings import NAMESPACE, Settings, cluster
from deploy.cluster.talk import Stop, ask, plan, say
from deploy.cluster.waiting import pod, ready, wait_ready

_APPLY = "Read the lines above; deploy/README.md has a table of failures. Nothing was taken away."
_SCALE = "Is the server deployed? make deploy"


def deploy() -> None:
    """Bring the checked-out course onto the cluster and start the server."""
    allowed = manifests.ranges(setting("ALLOW"))
    given = idle.settings_given()
    settings = cluster()
    folder = manifests.server(settings, allowed, given)
    size = (folder / "course.tar.gz").stat().st_size
    plan(
        f"This brings the course to {settings.place}:",
        [
            f"version {course.commit()[:12]}, {size / 1000:.0f} kB; participants' changes stay",
            f"a server with {settings.gpus} x L4; its node costs money until `make stop`, or until "
            f"{idle.in_words(given)}",
            f"reached from {', '.join(allowed)} WITHOUT encryption"
            if allowed
            else "no address outside the cluster; `make open` makes a tunnel",
        ],
    )
    ask("Go on?")
    namespace = str(REPOSITORY / "deploy/base/namespace.yaml")
    do(settings.kubectl("apply", "--server-side", "-f", namespace), _APPLY)
    token_secret.make(settings)
    before = pod(settings)
    apply = ("apply", "--server-side", "--force-conflicts", "-k", str(folder))
    do(settings.kubectl(*apply), _APPLY)
    if not allowed:  # what an earlier deploy may have opened
        closed = ("delete", "networkpolicy", "allowed-ranges-reach-jupyter", "--ignore-not-found")
        do(settings.kubectl(*closed), _APPLY)
    if before and not ready(before):
        # A StatefulSet waits for a pod that never becomes ready before it makes the better one.
        do(settings.kubectl("delete", "pod", "jax-jupyter-0", "--wait=false"), _APPLY)
    wait_ready(settings)
    say("The server is ready. Next: make open")
    if allowed:
        say(f"Its address: kubectl -n {NAMESPACE} get service jax-jupyter-svc")


def _port() -> int:
    text = setting("PORT", "8884")
    if not (text.isdecimal() and 0 < int(text) < 65536):
        raise Stop(f"PORT is {text!r}", "it takes a whole number from 1 to 65535, such as 8884")
    return int(text)


def open_server() -> None:
    """Make a tunnel to the server, again and again, and say where it is."""
    port = _port()
    settings = cluster()
    if not replicas(settings):
        idle.refuse_past_stop(settings)
        plan("The server is stopped.", ["starting it takes a GPU node, which costs money"])
        ask("Start it?")
        scale(settings, 1)
    wait_ready(settings)
    _refuse_taken(port)
    say(f"JupyterLab: http://127.0.0.1:{port}/lab?token={token_secret.read(settings)}")
    say("The address is a password. Ctrl-C closes the tunnel; the server goes on (make stop).")
    forward = ("port-forward", "--address=127.0.0.1", "service/jax-jupyter-svc", f"{port}:8884")
    while True:
        subprocess.run(settings.kubectl(*forward), cwd=REPOSITORY)
        if not replicas(settings):
            say("The server was stopped. Files are kept; `make open` starts it again.")
            return
        say("The tunnel broke; making it anew.")
        time.sleep(float(setting("RETRY_SECONDS", "2")))


def stop() -> None:
    """Stop the server; its node goes by itself, its volume stays."""
    settings = cluster()
    plan(
        f"This stops the server on {settings.place}:",
        [
            "running kernels end, and with them what is not saved; files stay",
            "the GPU node is removed about ten minutes later; the system node and disks still cost",
        ],
    )
    scale(settings, 0)
    wait_gone(settings)
    say("Stopped. `make open` starts it again; `make cluster-down` ends all cost.")


def scale(settings: Settings, replicas: int) -> None:
    """Ask for one server or none."""
    do(scaled(settings, replicas), _SCALE)


def scaled(settings: Settings, replicas: int) -> list[str]:
    """The call that asks for one server or none."""
    return settings.kubectl("scale", "statefulset/jax-jupyter", f"--replicas={replicas}")


def wait_gone(settings: Settings) -> None:
    """Wait until the server's pod has let go of the volume."""
    gone = ("wait", "--for=delete", "pod/jax-jupyter-0", "--timeout=180s")
    do(settings.kubectl(*gone), "kubectl -n jax-course delete pod jax-jupyter-0, then try again.")


def replicas(settings: Settings) -> int:
    """How many servers are asked for: one or none."""
    where = ("get", "statefulset/jax-jupyter", "-o", "jsonpath={.spec.replicas}")
    return int(answer(settings.kubectl(*where), _SCALE).strip() or 0)


def _refuse_taken(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise Stop(
                f"port {port} is taken on this machine", f"make open PORT={port + 1}"
            ) from error
