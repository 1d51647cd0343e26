"""The idle scaler against a cluster and a JupyterLab that answer what the test says."""

import json
import threading
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from deploy.pod import idle_scaler


class World:
    """What the two servers know."""

    def __init__(self) -> None:
        self.replicas, self.patches, self.asked = 1, [], []
        self.kernels, self.terminals, self.token = [], [], "right"
        self.started = ago(minutes=300)
        self.answers = True

    def get(self, path: str, token: str):
        if "/scale" in path:
            return {"spec": {"replicas": self.replicas}}
        if token != f"token {self.token}":
            return 403
        return {
            "/api/status": {"started": self.started, "last_activity": ago(minutes=0)},
            "/api/kernels": self.kernels,
            "/api/terminals": self.terminals,
        }[path.split("?")[0]]


def ago(**units: float) -> str:
    return (datetime.now(UTC) - timedelta(**units)).isoformat().replace("+00:00", "Z")


@contextmanager
def served(world: World):
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            world.asked.append(self.path)
            found = (
                world.get(self.path, self.headers.get("Authorization", ""))
                if world.answers
                else 500
            )
            self.send_response(found if isinstance(found, int) else 200)
            self.end_headers()
            if not isinstance(found, int):
                self.wfile.write(json.dumps(found).encode())

        def do_PATCH(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            world.patches.append((self.path, self.headers["Content-Type"], body))
            world.replicas = body["spec"]["replicas"]
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def world(tmp_path, monkeypatch):
    (tmp_path / "token").write_text("the account's token\n")
    monkeypatch.setattr(idle_scaler, "ACCOUNT", tmp_path)
    world = World()
    with served(world) as url:
        world.url = url
        yield world


def watch(world, minutes=60.0, stop_at=None, token="right", active=300.0):
    scale = idle_scaler.Scale(
        f"{world.url}/apis/apps/v1/namespaces/n/statefulsets/jax-jupyter/scale"
    )
    since = datetime.now(UTC) - timedelta(minutes=active)
    return idle_scaler.Watch(scale, idle_scaler.Server(world.url, token), minutes, stop_at, since)


def kernel(state="idle", **since: float) -> dict:
    return {"execution_state": state, "last_activity": ago(**since)}


def test_an_idle_server_is_scaled_to_none(world):
    world.kernels = [kernel(minutes=90)]
    assert "stopped it" in watch(world).look()
    (patch,) = world.patches
    assert patch[0].endswith("/statefulsets/jax-jupyter/scale")
    assert patch[1:] == ("application/merge-patch+json", {"spec": {"replicas": 0}})


@pytest.mark.parametrize("what", ["kernel", "busy", "terminal", "just started"])
def test_a_server_in_use_goes_on(world, what):
    if what == "kernel":
        world.kernels = [kernel(minutes=90), kernel(minutes=5)]
    if what == "busy":
        world.kernels = [kernel("busy", minutes=90)]
    if what == "terminal":
        world.terminals = [{"name": "1", "last_activity": ago(minutes=5)}]
    if what == "just started":
        world.started = ago(minutes=5)
    assert "idle for" in watch(world).look()
    assert world.patches == []


def test_an_open_tab_alone_keeps_no_node(world):
    """Its polling renews the server's own last activity, which is therefore not looked at."""
    assert "stopped it" in watch(world).look()


def test_asking_leaves_no_activity(world):
    watch(world).look()
    assert all("no_track_activity=1" in path for path in world.asked if path.startswith("/api/"))


def test_a_culled_kernel_still_counts_for_when_it_was_active(world):
    looking = watch(world)
    world.kernels = [kernel(minutes=20)]
    looking.look()
    world.kernels = []
    assert "idle for 20 of 60" in looking.look()


def test_a_server_that_never_comes_up_is_released_in_the_end(world):
    world.answers = True
    looking = watch(world, active=5)
    looking.server = idle_scaler.Server("http://127.0.0.1:9", "right")
    assert "doesn't answer" in looking.look()
    assert world.patches == []
    looking.active -= timedelta(minutes=60)
    assert "stopped it" in looking.look()


def test_without_the_token_nobody_is_stopped_for_idleness(world):
    assert "token is not known" in watch(world, token="").look()
    assert "token is not known" in watch(world, token="wrong").look()
    assert world.patches == []


def test_the_hard_stop_holds_for_whoever_works(world):
    world.kernels = [kernel("busy", minutes=0)]
    later = datetime.now(UTC) + timedelta(minutes=1)
    assert "idle for" in watch(world, stop_at=later).look()
    earlier = datetime.now(UTC) - timedelta(minutes=1)
    assert "stopped the server" in watch(world, stop_at=earlier).look()
    assert world.replicas == 0


def test_zero_minutes_switch_the_idle_stop_off(world):
    assert "idle for" in watch(world, minutes=0).look()
    assert world.patches == []


def test_a_stopped_server_is_left_alone_and_counts_anew(world):
    world.replicas = 0
    looking = watch(world)
    assert looking.look() == "no server runs"
    assert world.patches == []
    world.replicas, world.started = 1, ago(minutes=0)
    assert "idle for 0 of 60" in looking.look()


def test_times_are_read_as_jupyter_and_people_write_them():
    for text in ("2026-10-05T16:00:00.123456Z", "2026-10-05T18:00:00.123456+02:00"):
        assert idle_scaler._time(text) == datetime(2026, 10, 5, 16, 0, 0, 123456, UTC)
