"""`make deploy`, `make open`, `make stop`: the server with the course."""

import base64
import json
import secrets
import socket
import subprocess
import time
from datetime import UTC, datetime

from deploy.cluster import course
from deploy.cluster.programs import REPOSITORY, answer, do, parsed, setting
from deploy.cluster.settings import NAMESPACE, Settings, cluster
from deploy.cluster.talk import Stop, ask, plan, say
from deploy.cluster.waiting import pod, ready, wait_ready

_APPLY = "Read the lines above; deploy/README.md has a table of failures. Nothing was taken away."
_SCALE = "Is the server deployed? make deploy"
SECRET = "jax-jupyter-token"


def deploy() -> None:
    """Bring the checked-out course onto the cluster and start the server."""
    allowed = course.ranges(setting("ALLOW"))
    idle = {"IDLE_MINUTES": _minutes(), "STOP_AT": _stop_at()}
    settings = cluster()
    folder = course.server(settings, allowed, idle)
    size = (folder / "course.tar.gz").stat().st_size
    plan(
        f"This brings the course to {settings.place}:",
        [
            f"version {course.commit()[:12]}, {size / 1000:.0f} kB; participants' changes stay",
            f"a server with {settings.gpus} x L4; its node costs money until `make stop`, or until "
            f"{_when(idle)}",
            f"reached from {', '.join(allowed)} WITHOUT encryption"
            if allowed
            else "no address outside the cluster; `make open` makes a tunnel",
        ],
    )
    ask("Go on?")
    namespace = str(REPOSITORY / "deploy/base/namespace.yaml")
    do(settings.kubectl("apply", "--server-side", "-f", namespace), _APPLY)
    _make_token(settings)
    before = pod(settings)
    apply = ("apply", "--server-side", "--force-conflicts", "-k", str(folder))
    do(settings.kubectl(*apply), _APPLY)
    if before and not ready(before):
        # A StatefulSet waits for a pod that never becomes ready before it makes the better one.
        do(settings.kubectl("delete", "pod", "jax-jupyter-0", "--wait=false"), _APPLY)
    wait_ready(settings)
    say("The server is ready. Next: make open")
    if allowed:
        say(f"Its address: kubectl -n {NAMESPACE} get service jax-jupyter-svc")


def open_server() -> None:
    """Make a tunnel to the server, again and again, and say where it is."""
    port = int(setting("PORT", "8884"))
    settings = cluster()
    if not replicas(settings):
        _refuse_past_stop(settings)
        plan("The server is stopped.", ["starting it takes a GPU node, which costs money"])
        ask("Start it?")
        scale(settings, 1)
    wait_ready(settings)
    _refuse_taken(port)
    say(f"JupyterLab: http://127.0.0.1:{port}/lab?token={_token(settings)}")
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


def _make_token(settings: Settings) -> None:
    """A Secret with a random token, once; it goes through a pipe and is never printed."""
    if has(settings, f"secret/{SECRET}"):
        return
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": SECRET, "namespace": NAMESPACE},
        "stringData": {"token": secrets.token_hex(24)},  # without a newline at its end
    }
    do(settings.kubectl("create", "-f", "-"), _APPLY, given=json.dumps(secret))


def has(settings: Settings, what: str) -> bool:
    """Whether something is in the namespace."""
    found = answer(settings.kubectl("get", what, "--ignore-not-found", "-o", "name"), _APPLY)
    return bool(found.strip())


def _token(settings: Settings) -> str:
    if has(settings, f"secret/{SECRET}"):
        where = ("get", f"secret/{SECRET}", "-o", "jsonpath={.data.token}")
        token = base64.b64decode(answer(settings.kubectl(*where), _SCALE)).decode().strip()
    else:
        kept = ("exec", "jax-jupyter-0", "--", "cat", "/workspace/.course/token")
        token = answer(settings.kubectl(*kept), "make deploy makes a token.").strip()
    if not token:
        raise Stop("the token is empty", f"kubectl delete secret {SECRET}, then make deploy.")
    return token


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


def _refuse_past_stop(settings: Settings) -> None:
    where = ("get", "configmap/jax-idle-settings", "-o", "json")
    data = parsed(settings.kubectl(*where), _SCALE).get("data", {})
    if (at := data.get("STOP_AT", "")) and _time(at) <= datetime.now(UTC):
        raise Stop(
            f"the stop time set with the last deploy ({at}) is past: a server would be stopped at once",
            "make deploy, without STOP_AT or with a later one.",
        )


def _minutes() -> str:
    text = setting("IDLE_MINUTES", "60")
    if not text.isdecimal():
        raise Stop(f"IDLE_MINUTES is {text!r}", "A whole number of minutes; 0 switches it off.")
    return text


def _stop_at() -> str:
    text = setting("STOP_AT")
    if not text:
        return ""
    if _time(text) <= datetime.now(UTC):
        raise Stop(f"STOP_AT={text} is past", "Give a time that is still to come.")
    return text


def _time(text: str) -> datetime:
    cure = "Like this, with its time zone: STOP_AT=2026-10-05T18:00:00+02:00"
    try:
        time_read = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError as error:
        raise Stop(f"STOP_AT={text} is no time", cure) from error
    if time_read.tzinfo is None:
        raise Stop(f"STOP_AT={text} says no time zone", cure)
    return time_read


def _when(idle: dict[str, str]) -> str:
    minutes = int(idle["IDLE_MINUTES"])
    idle_stop = f"nothing was computed for {minutes} minutes" if minutes else "somebody stops it"
    return f"{idle_stop}, or {idle['STOP_AT']}" if idle["STOP_AT"] else idle_stop
