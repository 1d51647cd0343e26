"""Every manifest, as kubectl renders it: valid, and within the rules; and each rule can say no."""

import base64
import copy
import gzip
import json
import re
import subprocess

import infra_rules
import pytest
import yaml
from infra_rules import GPU_NODES, RULES, box, named, of, on_gpu, pod, variables
from infra_tools import REPOSITORY, run, tool

from deploy.cluster import course
from deploy.cluster import manifests as manifests_of
from deploy.cluster.settings import Settings
from deploy.cluster.talk import Stop

SERVER = ["base", "overlays/four-gpus", "overlays/load-balancer", "overlays/spot"]
JOBS = ["jobs/course-run", "jobs/workers"]


def render(folder) -> list[dict]:
    done = run(tool("kubectl"), "kustomize", str(folder))
    assert done.returncode == 0, done.stderr
    return list(yaml.safe_load_all(done.stdout))


@pytest.fixture(scope="module")
def manifests():
    rendered = {name: render(REPOSITORY / "deploy" / name) for name in [*SERVER, *JOBS]}
    rendered["jupyter.yaml"] = list(
        yaml.safe_load_all((REPOSITORY / "deploy/jupyter.yaml").read_text())
    )
    return rendered


def complaints(docs):
    server = bool(of(docs, "StatefulSet", "Namespace"))
    for name, (check, _) in RULES.items():
        if not server and name in ("the_labs_find_their_names", "idle_kernels_are_culled"):
            continue
        yield from (f"{name}: {each}" for each in check(docs))


@pytest.mark.parametrize("name", [*SERVER, *JOBS, "jupyter.yaml"])
def test_a_manifest_keeps_every_rule(manifests, name):
    assert list(complaints(manifests[name])) == []


@pytest.mark.parametrize(
    ("rule", "number"),
    [(name, n) for name, (_, breaks) in RULES.items() for n in range(len(breaks))],
)
def test_a_rule_rejects_the_broken_manifest(manifests, rule, number):
    check, breaks = RULES[rule]
    broken = 0
    for docs in (manifests["base"], manifests["jobs/course-run"], manifests["jobs/workers"]):
        docs = copy.deepcopy(docs)
        try:
            breaks[number](docs)
        except (StopIteration, KeyError, ValueError, IndexError, AssertionError):
            continue  # this manifest has nothing of that kind to break
        assert list(check(docs)), f"{rule} accepts what it should reject"
        broken += 1
    assert broken, f"nothing was broken for {rule}"


@pytest.mark.parametrize("name", [*SERVER, *JOBS, "jupyter.yaml"])
def test_kubernetes_knows_every_field(manifests, name, tmp_path):
    (tmp_path / "all.yaml").write_text(yaml.safe_dump_all(manifests[name]))
    done = run(tool("kubernetes-validate"), "--strict", str(tmp_path / "all.yaml"))
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_validator_would_notice(manifests, tmp_path):
    docs = copy.deepcopy(manifests["base"])
    box(named(docs, "StatefulSet"))["redinessProbe"] = {}
    (tmp_path / "all.yaml").write_text(yaml.safe_dump_all(docs))
    assert run(tool("kubernetes-validate"), "--strict", str(tmp_path / "all.yaml")).returncode


def test_values_that_schemas_do_not_check(manifests):
    """Enums and ports, which the validator's schemas let pass."""
    for name, docs in manifests.items():
        assert docs, name
        text = yaml.safe_dump_all(docs)
        ports = [int(port) for port in re.findall(r"\b(?:containerPort|port): (\d+)", text)]
        assert all(0 < port < 65536 for port in ports), name
        assert set(re.findall(r"imagePullPolicy: (\w+)", text)) == {"IfNotPresent"}, name
        assert set(re.findall(r"\beffect: (\w+)", text)) == {"NoSchedule"}, name
        assert set(re.findall(r"\bprotocol: (\w+)", text)) <= {"TCP", "UDP"}, name


def test_spot_and_four_gpus_change_what_they_say(manifests):
    spot = pod(named(manifests["overlays/spot"], "StatefulSet"))
    assert spot["nodeSelector"]["cloud.google.com/gke-spot"] == "true"
    assert spot["terminationGracePeriodSeconds"] <= 25
    assert infra_rules.gpus(named(manifests["overlays/four-gpus"], "StatefulSet")) == 4


def test_by_default_nothing_has_an_address_outside(manifests):
    for name in ("base", "overlays/four-gpus", "overlays/spot", "jupyter.yaml", *JOBS):
        kinds = {doc["spec"].get("type", "ClusterIP") for doc in of(manifests[name], "Service")}
        assert kinds <= {"ClusterIP"}, name


def test_the_load_balancers_placeholder_lets_nobody_in(manifests):
    service = named(manifests["overlays/load-balancer"], "Service")["spec"]
    assert service["loadBalancerSourceRanges"] == ["203.0.113.0/24"]  # for documentation, RFC 5737


@pytest.mark.parametrize("machine", GPU_NODES["machine_types"])
def test_commands_ask_for_the_gpus_that_terraform_makes(machine, monkeypatch, tmp_path):

    settings = an_example(machine)
    monkeypatch.setattr(course, "archive", lambda: b"\x1f\x8b\xff")
    server = render(manifests_of.server(settings, [], {"IDLE_MINUTES": "30", "STOP_AT": ""}))
    lessons = render(
        manifests_of.job(
            "jax-course-run", "course-run", settings, {}, {"EXPECT_GPUS": str(settings.gpus)}
        )
    )
    for docs in (server, lessons):
        assert list(complaints(docs)) == []
        assert [infra_rules.gpus(doc) for doc in on_gpu(docs)] == [settings.gpus]
    assert variables(named(lessons, "Job"))["EXPECT_GPUS"] == str(settings.gpus)
    assert named(server, "ConfigMap", "jax-idle-settings")["data"]["IDLE_MINUTES"] == "30"
    assert base64.b64decode(named(server, "ConfigMap", "jax-course")["binaryData"]["course.tar.gz"])


def test_four_workers_on_spot_nodes(monkeypatch):

    settings = an_example("g2-standard-48", spot=True)
    spec = {"completions": 4, "parallelism": 4}
    docs = render(
        manifests_of.job("jax-workers", "workers", settings, spec, {"PROCESS_COUNT": "4"})
    )
    assert list(complaints(docs)) == []
    job = named(docs, "Job")
    assert (job["spec"]["completions"], variables(job)["PROCESS_COUNT"]) == (4, "4")
    assert pod(job)["nodeSelector"]["cloud.google.com/gke-spot"] == "true"
    assert infra_rules.gpus(job) == 4


def test_allowed_ranges_go_into_both_places(monkeypatch):

    monkeypatch.setattr(course, "archive", lambda: b"\x1f\x8b\xff")
    ranges = manifests_of.ranges("198.51.100.7/32, 192.0.2.0/24")
    docs = render(manifests_of.server(an_example("g2-standard-24"), ranges, {}))
    assert list(complaints(docs)) == []
    assert named(docs, "Service")["spec"]["loadBalancerSourceRanges"] == ranges
    for wrong in ("0.0.0.0/0", "0.0.0.0/1 128.0.0.0/1", "8.0.0.0/8", "everybody", "10.0.0.1/8"):
        with pytest.raises(Stop):
            manifests_of.ranges(wrong)


def an_example(machine: str, spot: bool = False):
    size = GPU_NODES["machine_types"][machine]
    place = ("course-project-1", "us-central1", "us-central1-a", "jax-course")
    return Settings(*place, machine, size["gpus"], 4, spot, [], {})


def test_jupyter_yaml_is_the_base_with_the_lock(manifests):
    """`make jupyter-yaml` makes it; how gzip packs may differ between machines, what it packs may not."""
    docs = [
        doc for doc in manifests["jupyter.yaml"] if doc["metadata"]["name"] != "jax-course-lock"
    ]
    assert docs == manifests["base"], "run `make jupyter-yaml`"
    lock = named(manifests["jupyter.yaml"], "ConfigMap", "jax-course-lock")
    packed = base64.b64decode(lock["binaryData"]["requirements.txt.gz"])
    lines = (REPOSITORY / "requirements.txt").read_bytes()
    assert gzip.decompress(packed) == lines, "run `make jupyter-yaml`"


def test_jupyter_yaml_can_be_applied_by_kubectl_alone(manifests):
    """kubectl keeps a copy of each object in an annotation, which may have 262,144 bytes."""
    assert max(len(json.dumps(doc)) for doc in manifests["jupyter.yaml"]) < 250_000
    server = named(manifests["jupyter.yaml"], "StatefulSet")
    optional = [each["configMap"] for each in pod(server)["volumes"] if "configMap" in each]
    names = {doc["metadata"]["name"] for doc in of(manifests["jupyter.yaml"], "ConfigMap")}
    assert all(each.get("optional") or each["name"] in names for each in optional)
    token = next(each for each in box(server)["env"] if each["name"] == "JUPYTER_TOKEN")
    assert token["valueFrom"]["secretKeyRef"]["optional"]


def test_the_course_travels_in_one_config_map():

    packed = course.archive()
    assert len(packed) < course.LIMIT < 2**20
    names = subprocess.run(
        ["tar", "-tz"], input=packed, capture_output=True, check=True
    ).stdout.decode()
    assert "requirements.txt\n" in names
    assert "notebooks/01_training_loop.ipynb\n" in names
    for path in course.LEFT_OUT:
        assert path not in names
