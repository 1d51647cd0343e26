"""The rules that every rendered manifest keeps, each beside the broken manifests that it rejects."""

import ipaddress
import json
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

from infra_tools import REPOSITORY

Docs = list[dict[str, Any]]
GPU_NODES = json.loads((REPOSITORY / "terraform/gpu_nodes.json").read_text())
RULES: dict[str, tuple[Callable[[Docs], Iterator[str]], tuple[Callable[[Docs], Any], ...]]] = {}


def rule(*breaks: Callable[[Docs], Any]):
    """Register a rule: a generator of complaints, and changes that must make it complain."""

    def register(check):
        RULES[check.__name__] = (check, breaks)
        return check

    return register


def of(docs: Docs, *kinds: str) -> Docs:
    return [doc for doc in docs if doc["kind"] in kinds]


def named(docs: Docs, kind: str, name: str = "") -> dict[str, Any]:
    found = [doc for doc in of(docs, kind) if name in doc["metadata"]["name"]]
    return min(found, key=lambda doc: len(doc["metadata"]["name"])) if name else next(iter(found))


def workloads(docs: Docs) -> Docs:
    return of(docs, "StatefulSet", "Deployment", "Job", "DaemonSet", "CronJob", "Pod")


def pod(doc: dict[str, Any]) -> dict[str, Any]:
    return doc["spec"]["template"]["spec"]


def box(doc: dict[str, Any]) -> dict[str, Any]:
    return pod(doc)["containers"][0]


def on_gpu(docs: Docs) -> Docs:
    return [doc for doc in workloads(docs) if "nvidia.com/gpu" in str(box(doc)["resources"])]


def variables(doc: dict[str, Any]) -> dict[str, Any]:
    return {each["name"]: each.get("value") for each in box(doc)["env"]}


def volume(doc: dict[str, Any], name: str) -> dict[str, Any]:
    return next(each for each in pod(doc)["volumes"] if each["name"] == name)


def gib(text: str) -> float:
    return float(text[:-2]) * {"Gi": 1, "Mi": 1 / 1024}[text[-2:]]


def first(docs: Docs) -> dict[str, Any]:
    return on_gpu(docs)[0]


def put(find: Callable[[Docs], Any], key: Any, value: Any) -> Callable[[Docs], None]:
    """A change that sets one value."""

    def change(docs: Docs) -> None:
        find(docs)[key] = value

    return change


def drop(find: Callable[[Docs], Any], key: Any) -> Callable[[Docs], None]:
    """A change that takes one thing away."""

    def change(docs: Docs) -> None:
        del find(docs)[key]

    return change


# --- Pod Security: the four fields of `restricted`, and what goes with them -----------------------


@rule(
    put(lambda d: pod(first(d))["securityContext"], "runAsNonRoot", False),
    put(lambda d: pod(first(d))["securityContext"], "runAsUser", 0),
    put(lambda d: box(first(d))["securityContext"], "runAsUser", 0),
)
def nothing_runs_as_root(docs):
    for doc in workloads(docs):
        for context in (pod(doc)["securityContext"], box(doc)["securityContext"]):
            if not context.get("runAsNonRoot") or context.get("runAsUser", 1000) == 0:
                yield f"{doc['metadata']['name']} may run as root"
        if not pod(doc)["securityContext"].get("runAsUser"):
            yield f"{doc['metadata']['name']} leaves its user to the image"


@rule(
    put(lambda d: box(first(d))["securityContext"], "allowPrivilegeEscalation", True),
    drop(lambda d: box(first(d))["securityContext"], "allowPrivilegeEscalation"),
    put(lambda d: box(first(d))["securityContext"], "privileged", True),
)
def no_privilege_is_gained(docs):
    for doc in workloads(docs):
        context = box(doc)["securityContext"]
        if context.get("allowPrivilegeEscalation") is not False or context.get("privileged"):
            yield f"{doc['metadata']['name']} may gain privileges"


@rule(
    drop(lambda d: box(first(d))["securityContext"], "capabilities"),
    put(lambda d: box(first(d))["securityContext"]["capabilities"], "add", ["SYS_ADMIN"]),
)
def all_capabilities_are_dropped(docs):
    for doc in workloads(docs):
        if box(doc)["securityContext"].get("capabilities") != {"drop": ["ALL"]}:
            yield f"{doc['metadata']['name']} keeps capabilities"


@rule(
    drop(lambda d: pod(first(d))["securityContext"], "seccompProfile"),
    put(lambda d: pod(first(d))["securityContext"], "seccompProfile", {"type": "Unconfined"}),
)
def system_calls_are_filtered(docs):
    for doc in workloads(docs):
        if pod(doc)["securityContext"].get("seccompProfile") != {"type": "RuntimeDefault"}:
            yield f"{doc['metadata']['name']} has no seccomp profile"


@rule(
    put(lambda d: box(first(d))["securityContext"], "readOnlyRootFilesystem", False),
    put(lambda d: pod(first(d)), "hostNetwork", True),
    put(lambda d: volume(first(d), "tmp"), "hostPath", {"path": "/"}),
)
def nothing_of_the_node_is_touched(docs):
    for doc in workloads(docs):
        name, spec = doc["metadata"]["name"], pod(doc)
        if not box(doc)["securityContext"].get("readOnlyRootFilesystem"):
            yield f"{name} may write into its image"
        if any(spec.get(key) for key in ("hostNetwork", "hostPID", "hostIPC")):
            yield f"{name} shares the node's namespaces"
        if any("hostPath" in each for each in spec["volumes"]):
            yield f"{name} mounts the node's files"


@rule(
    put(
        lambda d: named(d, "Namespace")["metadata"]["labels"],
        "pod-security.kubernetes.io/enforce",
        "baseline",
    )
)
def the_namespace_enforces_restricted(docs):
    for doc in of(docs, "Namespace"):
        if doc["metadata"]["labels"].get("pod-security.kubernetes.io/enforce") != "restricted":
            yield "the namespace does not enforce restricted"


@rule(
    put(lambda d: pod(first(d)), "automountServiceAccountToken", True),
    drop(lambda d: pod(first(d)), "automountServiceAccountToken"),
    put(lambda d: pod(first(d)), "enableServiceLinks", True),
)
def pods_have_no_say_in_the_cluster(docs):
    for doc in workloads(docs):
        name = doc["metadata"]["name"]
        if name != "jax-idle-scaler" and pod(doc).get("automountServiceAccountToken") is not False:
            yield f"{name} gets a service account's token"
        if pod(doc).get("enableServiceLinks") is not False:
            yield f"{name} gets every service as variables"


@rule(
    put(lambda d: named(d, "Role")["rules"][0], "verbs", ["*"]),
    put(lambda d: named(d, "Role")["rules"][0], "resources", ["statefulsets"]),
    drop(lambda d: named(d, "Role")["rules"][0], "resourceNames"),
    put(lambda d: named(d, "Role"), "kind", "ClusterRole"),
)
def rights_are_few(docs):
    if of(docs, "ClusterRole", "ClusterRoleBinding"):
        yield "rights in the whole cluster"
    allowed = {
        "apiGroups": ["apps"],
        "resources": ["statefulsets/scale"],
        "resourceNames": ["jax-jupyter"],
        "verbs": ["get", "patch"],
    }
    for doc in of(docs, "Role"):
        if doc["rules"] != [allowed]:
            yield f"{doc['metadata']['name']} may more than scale one server"


@rule(
    lambda d: d.append({"kind": "Secret", "metadata": {"name": "token"}, "data": {"token": "x"}}),
    lambda d: box(first(d))["env"].append({"name": "JUPYTER_TOKEN", "value": "letmein"}),
    lambda d: box(first(d))["command"].append("--IdentityProvider.token=letmein"),
)
def no_secret_is_in_the_manifests(docs):
    if of(docs, "Secret"):
        yield "a Secret is committed"
    for doc in workloads(docs):
        if any("TOKEN" in each["name"] and "value" in each for each in box(doc)["env"]):
            yield f"{doc['metadata']['name']} has a token in plain sight"
        if "token=" in " ".join([*box(doc)["command"], *box(doc).get("args", [])]):
            yield f"{doc['metadata']['name']} has a token on its command line"


# --- Who reaches what -----------------------------------------------------------------------------


def _lb(docs: Docs, ranges: list[str] | None) -> None:
    service = named(docs, "Service")["spec"]
    service.update(type="LoadBalancer", clusterIP="", externalTrafficPolicy="Local")
    if ranges is not None:
        service["loadBalancerSourceRanges"] = ranges


@rule(
    put(lambda d: named(d, "Service")["spec"], "type", "NodePort"),
    lambda d: _lb(d, None),
    lambda d: _lb(d, []),
    lambda d: _lb(d, ["0.0.0.0/0"]),
    lambda d: _lb(d, ["0.0.0.0/1", "128.0.0.0/1"]),
    put(lambda d: named(d, "Service")["spec"], "externalIPs", ["198.51.100.1"]),
    put(lambda d: box(first(d)), "ports", [{"containerPort": 8884, "hostPort": 8884}]),
    lambda d: d.append({"kind": "Ingress", "metadata": {"name": "open"}}),
)
def nobody_outside_reaches_in_unasked(docs):
    if of(docs, "Ingress", "Gateway", "HTTPRoute"):
        yield "a way in from outside"
    for doc in of(docs, "Service"):
        spec, name = doc["spec"], doc["metadata"]["name"]
        ranges = [ipaddress.ip_network(each) for each in spec.get("loadBalancerSourceRanges", [])]
        wide = [each for each in ranges if each.prefixlen < 16]
        kind = spec.get("type", "ClusterIP")
        if kind not in ("ClusterIP", "LoadBalancer") or spec.get("externalIPs"):
            yield f"service {name} is reachable from outside"
        if kind == "LoadBalancer" and (
            not ranges or wide or spec.get("externalTrafficPolicy") != "Local"
        ):
            yield f"service {name} is open to the internet"
    for doc in workloads(docs):
        if any("hostPort" in port for port in box(doc).get("ports", [])):
            yield f"{doc['metadata']['name']} takes a port of the node"


def _ingress_from_everywhere(docs: Docs) -> None:
    named(docs, "NetworkPolicy", "idle-scaler-asks" if of(docs, "StatefulSet") else "workers")[
        "spec"
    ]["ingress"] = [{"from": [{"ipBlock": {"cidr": "0.0.0.0/0"}}]}]


def _ingress_without_from(docs: Docs) -> None:
    _ingress_from_everywhere(docs)
    for policy in of(docs, "NetworkPolicy"):
        for each in policy["spec"].get("ingress", []):
            each.pop("from", None)


@rule(_ingress_from_everywhere, _ingress_without_from)
def callers_are_named(docs):
    services = {
        cidr
        for doc in of(docs, "Service")
        for cidr in doc["spec"].get("loadBalancerSourceRanges", [])
    }
    policies = set()
    for doc in of(docs, "NetworkPolicy"):
        for each in doc["spec"].get("ingress", []):
            if not each.get("from"):
                yield f"{doc['metadata']['name']} lets everybody in"
            policies |= {
                peer["ipBlock"]["cidr"] for peer in each.get("from", []) if "ipBlock" in peer
            }
    if services != policies:
        yield f"the load balancer lets in {services}, the network policy {policies}"


def _policy(docs: Docs, name: str) -> dict[str, Any]:
    return named(docs, "NetworkPolicy", name)["spec"]


@rule(
    lambda d: d.remove(named(d, "NetworkPolicy", "nothing-by-default")),
    put(lambda d: _policy(d, "nothing-by-default"), "policyTypes", ["Ingress"]),
    put(
        lambda d: _policy(d, "internet")["egress"][0]["to"][0]["ipBlock"], "except", ["10.0.0.0/8"]
    ),
    drop(lambda d: _policy(d, "internet")["egress"][0]["to"][0]["ipBlock"], "except"),
)
def traffic_is_denied_by_default(docs):
    policies = [doc["spec"] for doc in of(docs, "NetworkPolicy")]
    nothing = {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    if of(docs, "Namespace") and nothing not in policies:
        yield "no policy denies by default"
    never = ["10.1.2.3", "172.16.0.1", "192.168.1.1", "100.64.0.1", "169.254.169.254"]
    for peer in [peer for p in policies for e in p.get("egress", []) for peer in e.get("to", [])]:
        block = peer.get("ipBlock", {"cidr": "255.255.255.255/32"})
        for address in map(ipaddress.ip_address, never):
            ranges = [ipaddress.ip_network(each) for each in block.get("except", [])]
            if address in ipaddress.ip_network(block["cidr"]) and not any(
                address in r for r in ranges
            ):
                yield f"{address} can be reached from pods"


# --- The GPU node ---------------------------------------------------------------------------------


@rule(
    put(
        lambda d: pod(first(d))["nodeSelector"],
        "cloud.google.com/gke-accelerator",
        "nvidia-tesla-t4",
    ),
    put(lambda d: pod(first(d)), "tolerations", []),
    put(lambda d: pod(first(d))["tolerations"][0], "value", "true"),
    put(lambda d: pod(first(d))["tolerations"][0], "effect", "NoExecute"),
)
def pods_fit_the_pool_that_terraform_makes(docs):
    taint = GPU_NODES["taint"]
    effect = {"NO_SCHEDULE": "NoSchedule"}[taint["effect"]]
    wanted = {"key": taint["key"], "operator": "Equal", "value": taint["value"], "effect": effect}
    for doc in on_gpu(docs):
        selector = pod(doc).get("nodeSelector", {})
        if selector.get("cloud.google.com/gke-accelerator") != GPU_NODES["accelerator"]:
            yield f"{doc['metadata']['name']} does not ask for {GPU_NODES['accelerator']}"
        if wanted not in pod(doc).get("tolerations", []):
            yield f"{doc['metadata']['name']} does not tolerate the pool's taint"


def gpus(doc: dict[str, Any]) -> int:
    return box(doc)["resources"]["limits"]["nvidia.com/gpu"]


def allocatable(machine: dict[str, int]) -> tuple[float, float]:
    """CPUs and GiB that GKE leaves to pods: its published formula, and 1 GiB for its daemons."""
    memory, reserved = machine["memory_gb"], 0.1
    for size, share in ((4, 0.25), (4, 0.20), (8, 0.10), (112, 0.06), (float("inf"), 0.02)):
        reserved += min(max(memory, 0), size) * share
        memory -= size
    cpus = machine["cpus"] - 0.06 - 0.01 - 0.01 - max(machine["cpus"] - 4, 0) * 0.0025 - 0.7
    return cpus, machine["memory_gb"] - reserved - 1


@rule(
    put(lambda d: box(first(d))["resources"]["limits"], "nvidia.com/gpu", 3),
    put(lambda d: box(first(d))["resources"]["requests"], "nvidia.com/gpu", 1),
    put(lambda d: box(first(d))["resources"]["requests"], "memory", "1000Gi"),
    put(lambda d: box(first(d))["resources"]["requests"], "cpu", "96"),
    drop(lambda d: box(first(d))["resources"]["limits"], "memory"),
)
def requests_fit_every_machine_with_as_many_gpus(docs):
    for doc in on_gpu(docs):
        name, resources = doc["metadata"]["name"], box(doc)["resources"]
        machines = {n: m for n, m in GPU_NODES["machine_types"].items() if m["gpus"] == gpus(doc)}
        if not machines or resources["requests"]["nvidia.com/gpu"] != gpus(doc):
            yield f"{name} asks for {gpus(doc)} GPUs, which no machine has"
        if resources["requests"]["memory"] != resources["limits"].get("memory"):
            yield f"{name} may be evicted for memory"
        for machine, size in machines.items():
            cpus, memory = allocatable(size)
            if (
                float(resources["requests"]["cpu"]) > cpus
                or gib(resources["requests"]["memory"]) > memory
            ):
                yield f"{name} does not fit {machine}"


@rule(
    put(lambda d: volume(first(d), "shm"), "emptyDir", {}),
    put(lambda d: volume(first(d), "shm")["emptyDir"], "sizeLimit", "512Gi"),
    lambda d: box(first(d))["volumeMounts"].remove({"name": "shm", "mountPath": "/dev/shm"}),
)
def nccl_has_shared_memory(docs):
    for doc in on_gpu(docs):
        name, shm = doc["metadata"]["name"], volume(doc, "shm").get("emptyDir", {})
        if shm.get("medium") != "Memory" or not gib(shm.get("sizeLimit", "0Gi")) >= 1:
            yield f"{name} has too little /dev/shm"
        elif gib(shm["sizeLimit"]) > gib(box(doc)["resources"]["requests"]["memory"]) / 4:
            yield f"{name}: /dev/shm takes more than a quarter of the memory limit"
        if {"name": "shm", "mountPath": "/dev/shm"} not in box(doc)["volumeMounts"]:
            yield f"{name} does not mount /dev/shm"


def _variable(docs: Docs, name: str) -> dict[str, Any]:
    return next(each for each in box(first(docs))["env"] if each["name"] == name)


@rule(
    put(lambda d: _variable(d, "PATH"), "value", "/usr/bin:/bin"),
    put(lambda d: _variable(d, "LD_LIBRARY_PATH"), "value", "/usr/local/cuda/lib64"),
    put(lambda d: _variable(d, "XLA_PYTHON_CLIENT_PREALLOCATE"), "value", "true"),
    lambda d: box(first(d))["env"].append({"name": "NCCL_P2P_DISABLE", "value": "1"}),
)
def the_driver_is_found(docs):
    for doc in on_gpu(docs):
        name, env = doc["metadata"]["name"], variables(doc)
        if "/usr/local/nvidia/bin" not in (env.get("PATH") or "").split(":"):
            yield f"{name}: PATH lacks the driver's programs"
        if env.get("LD_LIBRARY_PATH") != "/usr/local/nvidia/lib64":
            yield f"{name}: LD_LIBRARY_PATH is not the driver's folder"
        if env.get("XLA_PYTHON_CLIENT_PREALLOCATE") != "false":
            yield f"{name}: the first lesson would take all GPU memory"
        if nccl := [each for each in env if each.startswith("NCCL_")]:
            yield f"{name} sets {nccl}"


@rule(
    put(lambda d: box(first(d)), "image", "python:latest"),
    put(lambda d: box(first(d)), "image", "docker.io/library/python"),
)
def images_are_named_in_full(docs):
    for doc in workloads(docs):
        image = box(doc)["image"]
        if image.count("/") < 2 or ":" not in image or image.endswith(":latest"):
            yield f"{doc['metadata']['name']} runs {image}"


# --- JupyterLab -----------------------------------------------------------------------------------


@rule(
    drop(lambda d: box(named(d, "StatefulSet")), "startupProbe"),
    put(lambda d: box(named(d, "StatefulSet"))["startupProbe"], "failureThreshold", 30),
    put(lambda d: box(named(d, "StatefulSet"))["readinessProbe"]["httpGet"], "path", "/api/status"),
    put(lambda d: box(named(d, "StatefulSet"))["livenessProbe"], "failureThreshold", 1),
)
def probes_ask_what_needs_no_token(docs):
    for doc in of(docs, "StatefulSet"):
        probes = {
            kind: box(doc).get(f"{kind}Probe") for kind in ("startup", "readiness", "liveness")
        }
        for kind, probe in probes.items():
            if (probe or {}).get("httpGet") != {"path": "/api", "port": "http"}:
                yield f"the {kind} probe does not ask /api"
        start = probes["startup"] or {}
        if start.get("periodSeconds", 10) * start.get("failureThreshold", 3) < 900:
            yield "the startup probe gives up before the environment is installed"
        if (
            probes["liveness"]["periodSeconds"] * probes["liveness"].get("failureThreshold", 3)
            < 120
        ):
            yield "the liveness probe kills a busy server"


def _programs(docs: Docs) -> dict[str, str]:
    return named(docs, "ConfigMap", "jax-course-programs")["data"]


def _config(change: tuple[str, str]) -> Callable[[Docs], None]:
    def edit(docs: Docs) -> None:
        data = _programs(docs)
        assert change[0] in data["jupyter_server_config.py"]
        data["jupyter_server_config.py"] = data["jupyter_server_config.py"].replace(*change)

    return edit


class _Anything(SimpleNamespace):
    def __getattr__(self, name: str) -> "_Anything":
        setattr(self, name, _Anything())
        return getattr(self, name)


@rule(
    _config(("cull_connected = True", "cull_connected = False")),
    _config(("cull_busy = False", "cull_busy = True")),
    _config(
        (
            '"45")) * 60\nc.MappingKernelManager.cull_interval',
            '"0")) * 60\nc.MappingKernelManager.cull_interval',
        )
    ),
    _config(
        (
            'c.TerminalManager.cull_inactive_timeout = int(os.environ.get("KERNEL_IDLE_MINUTES", "45")) * 60',
            "",
        )
    ),
    _config(("shutdown_no_activity_timeout = 0", "shutdown_no_activity_timeout = 600")),
    _config(('"8884"', '"8888"')),
)
def idle_kernels_are_culled(docs):
    config = _Anything()
    source = _programs(docs)["jupyter_server_config.py"]
    exec(source, {"get_config": lambda: config})
    kernels, terminals = config.MappingKernelManager, config.TerminalManager
    if not (isinstance(kernels.cull_idle_timeout, int) and 0 < kernels.cull_idle_timeout <= 7200):
        yield "idle kernels are kept"
    if kernels.cull_connected is not True or kernels.cull_busy is not False:
        yield "an open tab keeps a kernel, or a busy one is ended"
    if not (
        isinstance(terminals.cull_inactive_timeout, int) and terminals.cull_inactive_timeout > 0
    ):
        yield "idle terminals are kept"
    if config.ServerApp.shutdown_no_activity_timeout != 0:
        yield "the server ends itself and is started again"
    if (config.ServerApp.port, config.ServerApp.port_retries) != (8884, 0):
        yield "JupyterLab listens elsewhere"


@rule(
    put(lambda d: named(d, "ConfigMap", "jax-idle-settings")["data"], "IDLE_MINUTES", "10"),
    lambda d: d.remove(named(d, "Deployment", "jax-idle-scaler")),
    put(lambda d: pod(named(d, "Deployment")), "tolerations", [{"operator": "Exists"}]),
)
def an_idle_server_is_released(docs):
    if not of(docs, "StatefulSet"):
        return
    if not of(docs, "Deployment"):
        yield "nothing releases the GPU node"
        return
    probe = box(named(docs, "StatefulSet"))["startupProbe"]
    starts = probe["periodSeconds"] * probe["failureThreshold"] / 60
    minutes = int(named(docs, "ConfigMap", "jax-idle-settings")["data"]["IDLE_MINUTES"])
    if 0 < minutes <= starts:
        yield "the scaler would stop a server that is still installing"
    if pod(named(docs, "Deployment")).get("tolerations"):
        yield "the scaler itself may sit on the GPU node"


@rule(
    put(lambda d: named(d, "PersistentVolumeClaim")["spec"], "storageClassName", "standard"),
    put(lambda d: named(d, "PersistentVolumeClaim")["spec"], "accessModes", ["ReadWriteMany"]),
    put(
        lambda d: named(d, "PersistentVolumeClaim")["spec"]["resources"]["requests"],
        "storage",
        "5Gi",
    ),
)
def the_volume_fits_g2_machines(docs):
    for doc in of(docs, "PersistentVolumeClaim"):
        spec = doc["spec"]
        if spec.get("storageClassName") != "standard-rwo":
            yield "G2 machines take no standard disk"
        if spec["accessModes"] != ["ReadWriteOncePod"]:
            yield "two pods may write the volume"
        if gib(spec["resources"]["requests"]["storage"]) < 30:
            yield "the environment does not fit the volume"


@rule(
    put(lambda d: named(d, "StatefulSet")["metadata"], "name", "jupyter"),
    put(lambda d: named(d, "StatefulSet")["spec"], "replicas", 2),
    put(lambda d: named(d, "StatefulSet"), "kind", "Deployment"),
    put(lambda d: named(d, "Service")["spec"]["ports"][0], "port", 80),
    put(lambda d: named(d, "Service")["metadata"], "name", "jupyter"),
    put(lambda d: pod(named(d, "StatefulSet"))["securityContext"], "fsGroupChangePolicy", "Always"),
    put(lambda d: _variable(d, "HOME"), "value", "/root"),
)
def the_labs_find_their_names(docs):
    found = of(docs, "StatefulSet")
    if [(doc["metadata"]["name"], doc["spec"]["replicas"]) for doc in found] != [
        ("jax-jupyter", 1)
    ]:
        yield "there is not one StatefulSet jax-jupyter with one pod"
        return
    services = {
        doc["metadata"]["name"]: doc["spec"]["ports"][0]["port"] for doc in of(docs, "Service")
    }
    if services.get("jax-jupyter-svc") != 8884:
        yield "jax-jupyter-svc does not listen on 8884"
    server = found[0]
    mounts = {each["name"]: each["mountPath"] for each in box(server)["volumeMounts"]}
    if mounts["workspace"] != "/workspace" or "persistentVolumeClaim" not in volume(
        server, "workspace"
    ):
        yield "/workspace is not on the volume"
    if not (variables(server)["HOME"] or "").startswith("/workspace/"):
        yield "HOME is not on the volume"
    context = pod(server)["securityContext"]
    if (context["fsGroup"], context["fsGroupChangePolicy"]) != (1000, "OnRootMismatch"):
        yield "each start walks through the whole volume"


# --- Jobs -----------------------------------------------------------------------------------------


@rule(
    put(lambda d: named(d, "Job")["spec"], "backoffLimit", 6),
    drop(lambda d: named(d, "Job")["spec"], "activeDeadlineSeconds"),
    drop(lambda d: named(d, "Job")["spec"], "ttlSecondsAfterFinished"),
    put(lambda d: pod(named(d, "Job")), "restartPolicy", "OnFailure"),
)
def jobs_end(docs):
    for doc in of(docs, "Job"):
        spec = doc["spec"]
        if spec.get("backoffLimit") != 0 or pod(doc)["restartPolicy"] != "Never":
            yield f"{doc['metadata']['name']} is tried again at the same price"
        if not (spec.get("activeDeadlineSeconds") and spec.get("ttlSecondsAfterFinished")):
            yield f"{doc['metadata']['name']} may stay for ever"


@rule(
    put(lambda d: named(d, "Job", "workers")["spec"], "parallelism", 1),
    put(lambda d: named(d, "Job", "workers")["spec"], "completionMode", "NonIndexed"),
    put(lambda d: _variable(d, "PROCESS_COUNT"), "value", "3"),
    put(lambda d: _variable(d, "COORDINATOR_ADDRESS"), "value", "jax-workers-1.jax-workers:8476"),
    put(lambda d: pod(named(d, "Job", "workers")), "subdomain", "workers"),
    put(lambda d: named(d, "Service", "workers")["spec"], "publishNotReadyAddresses", False),
    put(lambda d: named(d, "Service", "workers")["spec"], "clusterIP", "10.30.0.9"),
    put(
        lambda d: volume(named(d, "Job", "workers"), "workspace"),
        "persistentVolumeClaim",
        {"claimName": "x"},
    ),
    lambda d: d.remove(named(d, "NetworkPolicy", "workers")),
)
def workers_find_each_other(docs):
    for doc in [doc for doc in of(docs, "Job") if "workers" in doc["metadata"]["name"]]:
        name, spec, env = doc["metadata"]["name"], doc["spec"], variables(doc)
        if spec["completionMode"] != "Indexed" or spec["completions"] != spec["parallelism"]:
            yield f"{name} does not start all its processes at once"
        if env["PROCESS_COUNT"] != str(spec["completions"]):
            yield f"{name} tells its processes another count"
        services = {each["metadata"]["name"]: each["spec"] for each in of(docs, "Service")}
        service = services.get(pod(doc).get("subdomain"), {})
        if service.get("clusterIP") != "None" or not service.get("publishNotReadyAddresses"):
            yield f"{name}: its pods have no names"
        port = service.get("ports", [{"port": 0}])[0]["port"]
        if env["COORDINATOR_ADDRESS"] != f"{name}-0.{pod(doc).get('subdomain')}:{port}":
            yield f"{name}: {env['COORDINATOR_ADDRESS']} is not its first pod"
        if "persistentVolumeClaim" in volume(doc, "workspace"):
            yield f"{name}: pods on several nodes can't share a volume"
        peer = {"podSelector": {"matchLabels": {"app": name}}}
        if not any(
            p["spec"].get("ingress") == [{"from": [peer]}]
            and p["spec"].get("egress") == [{"to": [peer]}]
            for p in of(docs, "NetworkPolicy")
        ):
            yield f"{name}: its pods may not speak to each other"


@rule(
    put(lambda d: workloads(d)[0]["metadata"], "name", "a" * 64),
    put(lambda d: workloads(d)[0]["spec"]["template"]["metadata"]["labels"], "app", "a" * 64),
)
def names_are_short_enough(docs):
    for doc in docs:
        meta = doc["metadata"]
        template = doc.get("spec", {}).get("template", {}).get("metadata", {})
        # Pods are named after their workload and a number.
        extra = 4 if doc["kind"] in ("StatefulSet", "Job") else 0
        values = [*meta.get("labels", {}).values(), *template.get("labels", {}).values()]
        if len(meta["name"]) + extra > 63 or any(len(each) > 63 for each in values):
            yield f"{doc['kind']} {meta['name'][:20]}... has a name of more than 63 characters"
