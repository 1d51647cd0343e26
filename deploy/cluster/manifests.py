"""The manifests of one deployment: base and components by what Terraform made, and their settings."""

import hashlib
import ipaddress
import json
import shutil
from pathlib import Path
from typing import Any

from deploy.cluster import course
from deploy.cluster.settings import Settings
from deploy.cluster.talk import Stop


def gpu_components(settings: Settings) -> list[str]:
    """The components that make the base fit the GPU nodes that Terraform made."""
    size = [] if settings.gpus == 2 else [f"l4x{settings.gpus}"]
    return [f"../../components/{name}" for name in [*size, *(["spot"] if settings.spot else [])]]


def server(settings: Settings, allowed: list[str], idle: dict[str, str]) -> Path:
    """Manifests of the server with the course; returns their folder.

    Args:
        settings: the cluster.
        allowed: address ranges that reach the server from outside; none: no address at all.
        idle: settings of the idle scaler.
    """
    folder = _empty("server")
    packed = course.archive()
    (folder / "course.tar.gz").write_bytes(packed)
    version = f"{course.commit()[:12]}-{hashlib.sha256(packed).hexdigest()[:8]}"
    settled = hashlib.sha256(json.dumps(idle).encode()).hexdigest()[:8]
    patches = [
        _template("StatefulSet", "jax-jupyter", "apps/v1", {"course/version": version}),
        _template("Deployment", "jax-idle-scaler", "apps/v1", {"course/settings": settled}),
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "jax-idle-settings"},
            "data": idle,
        },
    ]
    components = gpu_components(settings)
    if allowed:
        components.append("../../components/load-balancer")
        patches += _open_to(allowed)
    generator = {
        "name": "jax-course",
        "files": ["course.tar.gz"],
        "options": {"disableNameSuffixHash": True, "annotations": {"course/version": version}},
    }
    return _write(folder, ["../../base"], components, patches, configMapGenerator=[generator])


def job(
    name: str, folder_of: str, settings: Settings, spec: dict[str, Any], env: dict[str, str]
) -> Path:
    """Manifests of a Job of deploy/jobs with its size and variables; returns their folder."""
    variables = [{"name": key, "value": value} for key, value in env.items()]
    container = {"name": "course", "env": variables}
    pod = {"template": {"spec": {"containers": [container]}}}
    patch = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {**spec, **pod},
    }
    folder = _empty(folder_of)
    return _write(folder, [f"../../jobs/{folder_of}"], gpu_components(settings), [patch])


def ranges(text: str) -> list[str]:
    """Address ranges as given to ALLOW; Stop for what is none, or is everybody."""
    found = []
    for part in text.replace(",", " ").split():
        try:
            network = ipaddress.IPv4Network(part)
        except ValueError as error:
            raise Stop(f"ALLOW: {error}", "ALLOW=198.51.100.7/32, or several in quotes.") from error
        if network.prefixlen < 16:
            raise Stop(
                f"ALLOW: {part} lets {network.num_addresses:,} addresses in",
                "Name your own: a public JupyterLab is found and misused within hours.",
            )
        found.append(str(network))
    return found


def _open_to(allowed: list[str]) -> list[dict[str, Any]]:
    sources = [{"ipBlock": {"cidr": each}} for each in allowed]
    port = {"port": 8884, "protocol": "TCP"}
    return [
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "jax-jupyter-svc"},
            "spec": {"loadBalancerSourceRanges": allowed},
        },
        {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "NetworkPolicy",
            "metadata": {"name": "allowed-ranges-reach-jupyter", "namespace": "jax-course"},
            "spec": {"ingress": [{"from": sources, "ports": [port]}]},
        },
    ]


def _template(kind: str, name: str, version: str, annotations: dict[str, str]) -> dict[str, Any]:
    """A patch that starts the pods anew when an annotation changes."""
    spec = {"template": {"metadata": {"annotations": annotations}}}
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec}


def _empty(name: str) -> Path:
    folder = course.BUILD / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def _write(
    folder: Path, resources: list[str], components: list[str], patches: list[Any], **more: Any
) -> Path:
    names = []
    for number, patch in enumerate(patches):
        names.append({"path": f"patch-{number}.yaml"})
        (folder / names[-1]["path"]).write_text(json.dumps(patch, indent=1))  # JSON is YAML
    kustomization = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "namespace": "jax-course",
        "resources": resources,
        "components": components,
        "patches": names,
        **more,
    }
    (folder / "kustomization.yaml").write_text(json.dumps(kustomization, indent=1))
    return folder
