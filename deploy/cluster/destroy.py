"""`make cluster-down`: workload, volumes, cluster; then look for what is left."""

import json
import time
from typing import Any

from deploy.cluster.programs import TERRAFORM, do, ended, need, parsed, setting
from deploy.cluster.settings import NAMESPACE, Settings, asked_for, made
from deploy.cluster.talk import Stop, ask, plan, say

_LOOK = "May this account list them? Look by hand: https://console.cloud.google.com/compute"
_AGAIN = "Then `make cluster-down` again: it goes on from where it is."


def down() -> None:
    """Take everything down in the order in which nothing is forgotten."""
    need("gcloud", "kubectl", "gke-gcloud-auth-plugin", "terraform")
    settings = made()
    if settings is None:
        say("Terraform has nothing here; looking for what may be left.")
        _nothing_left(asked_for(), [])
        return
    plan(
        f"This deletes {settings.place}:",
        [
            "the server, every Job, and the participants' files on their volumes, for ever",
            "then the cluster, its nodes and its network",
            "then it lists what is left in the project, and fails if anything of the course is",
            "to keep files first: kubectl -n jax-course cp jax-jupyter-0:/workspace saved",
        ],
    )
    ask("Delete all of it?")
    disks: list[str] = []
    if _cluster_there(settings):
        settings.connect()
        disks = _empty(settings)
    say("Destroying the cluster.")
    do([*TERRAFORM, "destroy", "-auto-approve", "-input=false", "-no-color"], _AGAIN)
    _nothing_left(settings, disks)


def _cluster_there(settings: Settings) -> bool:
    """Whether there is still a cluster; half a destroy may have left only the network."""
    command = settings.gcloud("container", "clusters", "list", "--format=json")
    return settings.cluster_name in [each["name"] for each in parsed(command, _LOOK)]


def _empty(settings: Settings) -> list[str]:
    """Delete the workload and wait for its volumes: only a living cluster deletes their disks."""
    volumes = _volumes(settings)
    foreign = [name for name, (namespace, _) in volumes.items() if namespace != NAMESPACE]
    if foreign:
        raise Stop(
            f"volumes of other namespaces would be left behind: {', '.join(foreign)}",
            f"kubectl get pv; delete their claims if nobody needs them. {_AGAIN}",
        )
    # With it go its services: a load balancer's leftovers would block the network's removal.
    say("Deleting the workload and its volumes.")
    gone = ("delete", "namespace", NAMESPACE, "--ignore-not-found", "--timeout=600s")
    do(
        settings.kubectl(*gone),
        f"kubectl describe namespace {NAMESPACE} says what holds it. {_AGAIN}",
    )
    until = time.monotonic() + float(setting("VOLUME_SECONDS", "300"))
    while left := _volumes(settings):
        if time.monotonic() > until:
            named = ", ".join(f"{name} (disk {disk})" for name, (_, disk) in left.items())
            raise Stop(
                f"volumes are still there: {named}",
                f"kubectl describe pv says why; the cluster was kept to delete them. {_AGAIN}",
            )
        time.sleep(float(setting("POLL_SECONDS", "10")))
    return [disk for _, disk in volumes.values() if disk]


def _volumes(settings: Settings) -> dict[str, tuple[str, str]]:
    """Namespace and disk of each volume in the cluster."""
    found = parsed(settings.kubectl("get", "pv", "-o", "json"), _AGAIN)["items"]
    volumes = {}
    for each in found:
        handle = each["spec"].get("csi", {}).get("volumeHandle", "")
        namespace = each["spec"].get("claimRef", {}).get("namespace", "")
        volumes[each["metadata"]["name"]] = (namespace, handle.rpartition("/")[2])
    return volumes


def _nothing_left(settings: Settings, disks: list[str]) -> None:
    """List what costs money in the project; Stop if any of it is the course's."""
    say("Looking for what is left.")
    ours: list[str] = []
    others: list[str] = []
    for what in (
        "container clusters",
        "compute instances",
        "compute disks",
        "compute forwarding-rules",
    ):
        command = settings.gcloud(*what.split(), "list", "--format=json")
        done = ended(command)
        if done.returncode:
            raise Stop(f"{what} can't be listed: {done.stderr.strip()[-300:]}", _LOOK)
        for each in json.loads(done.stdout or "[]"):
            line = f"{what.split()[1].removesuffix('s')} {each['name']}"
            (ours if _is_ours(each, settings, disks) else others).append(line)
    if others:
        say(f"  not the course's, so left alone: {', '.join(others)}")
    if ours:
        raise Stop(
            f"still there, and costing money: {', '.join(ours)}",
            "Delete each by hand: gcloud compute disks delete NAME --zone=ZONE and so on. "
            "A project made only for the course can be deleted whole: gcloud projects delete",
        )
    say("Nothing of the course is left; these two show it (empty, in a project of its own):")
    say(f"  gcloud container clusters list --project={settings.project_id}")
    say(f"  gcloud compute instances list --project={settings.project_id}")


def _is_ours(each: dict[str, Any], settings: Settings, disks: list[str]) -> bool:
    name = settings.cluster_name
    labels = {**each.get("labels", {}), **each.get("resourceLabels", {})}
    return (
        each["name"] in (name, *disks)
        or labels.get("goog-k8s-cluster-name") == name
        or labels.get("course") == name
        or each["name"].startswith(f"gke-{name}-")
        # What the cluster itself writes on the disks and addresses that it makes.
        or f'/namespace":"{NAMESPACE}"' in each.get("description", "")
        or f'service-name":"{NAMESPACE}/' in each.get("description", "").replace(" ", "")
    )
