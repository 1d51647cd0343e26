"""Release the GPU node: scale the server to none when nobody computes, or at a set hour.

It may read and patch the scale of one StatefulSet and nothing else. Activity is what kernels and
terminals do. The server's own last activity won't do: each open tab's polling renews it.
A server that doesn't answer counts as idle, so one that never comes up is released as well.
"""

import json
import os
import ssl
import sys
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ACCOUNT = Path(os.environ.get("ACCOUNT", "/var/run/secrets/kubernetes.io/serviceaccount"))
ALIVE = Path(os.environ.get("TMPDIR", "/tmp")) / "alive"  # the liveness probe looks at its age


class NoToken(Exception):
    """The server wants a token that this scaler hasn't got: it can't tell who is active."""


def _ask(url: str, headers: dict[str, str], patch: dict[str, Any] | None = None) -> Any:
    body = json.dumps(patch).encode() if patch else None
    request = urllib.request.Request(url, body, headers, method="PATCH" if patch else "GET")
    certificate = ACCOUNT / "ca.crt"
    context = ssl.create_default_context(cafile=str(certificate)) if certificate.exists() else None
    with urllib.request.urlopen(request, timeout=20, context=context) as answer:
        return json.load(answer)


@dataclass
class Scale:
    """The number of servers that there should be: one or none."""

    url: str

    @property
    def _headers(self) -> dict[str, str]:
        # Read each time: the token is renewed every hour.
        token = (ACCOUNT / "token").read_text().strip()
        kind = "application/merge-patch+json"
        return {"Authorization": f"Bearer {token}", "Content-Type": kind}

    def running(self) -> bool:
        """Whether a server is wanted."""
        return bool(_ask(self.url, self._headers)["spec"].get("replicas", 0))

    def to_none(self) -> None:
        """Stop the server; its volume stays."""
        _ask(self.url, self._headers, {"spec": {"replicas": 0}})


@dataclass
class Server:
    """JupyterLab's own API."""

    url: str
    token: str

    def last_activity(self) -> datetime:
        """When a kernel or a terminal last did something; now, while one is busy."""
        started = _time(self._get("api/status")["started"])
        kernels, terminals = self._get("api/kernels"), self._get("api/terminals")
        if any(kernel["execution_state"] == "busy" for kernel in kernels):
            return datetime.now(UTC)
        return max([started, *(_time(each["last_activity"]) for each in [*kernels, *terminals])])

    def _get(self, path: str) -> Any:
        headers = {"Authorization": f"token {self.token}"} if self.token else {}
        try:
            return _ask(f"{self.url}/{path}?no_track_activity=1", headers)
        except urllib.error.HTTPError as error:
            if error.code == 403:
                raise NoToken from error
            raise


@dataclass
class Watch:
    """Decides, once a minute, whether the server goes on."""

    scale: Scale
    server: Server
    idle_minutes: float
    stop_at: datetime | None
    active: datetime = field(default_factory=lambda: datetime.now(UTC))

    def look(self) -> str:
        """One look; returns what was found or done, in a line."""
        now = datetime.now(UTC)
        if not self.scale.running():
            self.active = now
            return "no server runs"
        if self.stop_at and now >= self.stop_at:
            self.scale.to_none()
            return f"it is past {self.stop_at:%Y-%m-%d %H:%M %Z}: stopped the server"
        try:
            self.active = max(self.active, self.server.last_activity())
        except NoToken:
            self.active = now
            return "the server's token is not known here, so only the hour can stop it"
        except (OSError, ValueError, KeyError) as error:
            note = f"the server doesn't answer ({error})"
        else:
            note = "the server answers"
        idle = (now - self.active).total_seconds() / 60
        if self.idle_minutes and idle >= self.idle_minutes:
            self.scale.to_none()
            return f"{note}; nothing computed for {idle:.0f} minutes: stopped it"
        return f"{note}; idle for {max(idle, 0):.0f} of {self.idle_minutes:g} minutes"


def _time(text: str) -> datetime:
    time_read = datetime.fromisoformat(text.replace("Z", "+00:00"))
    return time_read if time_read.tzinfo else time_read.replace(tzinfo=UTC)


def main() -> None:
    """Look once a minute, for ever; say what is new."""
    api = os.environ.get("KUBERNETES_API", "https://kubernetes.default.svc")
    name = f"namespaces/{os.environ['NAMESPACE']}/statefulsets/jax-jupyter"
    stop_at = os.environ.get("STOP_AT", "").strip()
    watch = Watch(
        Scale(f"{api}/apis/apps/v1/{name}/scale"),
        Server(os.environ["SERVER_URL"], os.environ.get("JUPYTER_TOKEN", "").strip()),
        float(os.environ.get("IDLE_MINUTES", "60")),
        _time(stop_at) if stop_at else None,
    )
    said = ""
    while True:
        try:
            found = watch.look()
        except (OSError, ValueError, KeyError) as error:
            found = f"the cluster doesn't answer: {error}"
        if found.split(";")[0] != said:  # the count of minutes is not news
            print(found, flush=True)
            said = found.split(";")[0]
        ALIVE.touch()
        time.sleep(float(os.environ.get("LOOK_SECONDS", "60")))


if __name__ == "__main__":
    sys.exit(main())
