"""Wait for the server's pod, and say what it waits for."""

import json
import time
from typing import Any

from deploy.cluster.programs import ended, setting
from deploy.cluster.settings import Settings
from deploy.cluster.talk import Stop, say

# What the autoscaler and the kubelet say, and what it means to somebody who wants to begin.
_SIGNS = {
    "ZONE_RESOURCE_POOL_EXHAUSTED": "the zone has no L4 free: wait, or set another zone, spot or a reservation",
    "STOCKOUT": "the zone has no L4 free: wait, or set another zone, spot or a reservation",
    "QUOTA_EXCEEDED": "a quota is too small: make preflight names it",
    "Insufficient nvidia.com/gpu": "a node of the pool is on its way, or another pod holds the GPUs",
    "ErrImagePull": "the image can't be pulled: look at Cloud NAT",
    "FailedAttachVolume": "the volume still hangs on the node before: it lets go within minutes",
}


def pod(settings: Settings) -> dict[str, Any] | None:
    """The server's pod, None while there is none."""
    done = ended(settings.kubectl("get", "pod/jax-jupyter-0", "-o", "json", "--ignore-not-found"))
    return json.loads(done.stdout) if done.returncode == 0 and done.stdout.strip() else None


def ready(found: dict[str, Any]) -> bool:
    """Whether JupyterLab answers."""
    conditions = found.get("status", {}).get("conditions", [])
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def wait_ready(settings: Settings) -> None:
    """Wait until JupyterLab answers; a line for each change, a Stop with the cure if it can't."""
    until = time.monotonic() + float(setting("READY_SECONDS", "2400"))
    said = ""
    # The change may need a moment to reach the pod; the StatefulSet knows when it has.
    while not (_rolled_out(settings) and (found := pod(settings)) and ready(found)):
        state = _state(settings)
        if state != said:
            say(f"  {state}")
            said = state
        if time.monotonic() > until:
            raise Stop(f"the server is not ready: {state}", _cure(settings))
        time.sleep(float(setting("POLL_SECONDS", "10")))


def _rolled_out(settings: Settings) -> bool:
    status = ("rollout", "status", "statefulset/jax-jupyter", "--watch=false")
    done = ended(settings.kubectl(*status))
    return done.returncode == 0 and "Waiting" not in done.stdout


def _state(settings: Settings) -> str:
    found = pod(settings)
    if found is None:
        return "waiting for the pod"
    if "nodeName" not in found["spec"]:
        return f"waiting for a GPU node{_sign(settings)}"
    for each in found["status"].get("containerStatuses", []):
        waiting = each["state"].get("waiting", {})
        ended_before = each.get("lastState", {}).get("terminated", {})
        if waiting.get("reason") == "CrashLoopBackOff" or ended_before.get("exitCode"):
            log = ended(settings.kubectl("logs", "jax-jupyter-0", "--previous", "--tail=6")).stdout
            raise Stop(
                f"the server can't start:\n{log}", "The last line says it. Then: make deploy"
            )
        if waiting:
            return f"{waiting.get('reason', 'waiting')}{_sign(settings)}"
    log = ended(settings.kubectl("logs", "jax-jupyter-0", "--tail=40")).stdout
    own = [line for line in log.splitlines() if line.startswith("course: ")]
    return own[-1].removeprefix("course: ") if own else "the server starts"


def _sign(settings: Settings) -> str:
    about = "--field-selector=involvedObject.name=jax-jupyter-0"
    events = ended(settings.kubectl("get", "events", about)).stdout
    return next((f" ({meaning})" for sign, meaning in _SIGNS.items() if sign in events), "")


def _cure(settings: Settings) -> str:
    return (
        "kubectl -n jax-course describe pod jax-jupyter-0 shows the events. "
        "It goes on trying, and a node would cost: `make stop` gives up."
    )
