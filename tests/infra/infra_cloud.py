"""A cloud of programs that only record how they are called, and answer what the test tells them."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

from infra_tools import REPOSITORY

SETTINGS = {
    "project_id": "course-project-1",
    "region": "us-central1",
    "zone": "us-central1-a",
    "cluster_name": "jax-course",
    "machine_type": "g2-standard-24",
    "gpus": 2,
    "max_gpu_nodes": 2,
    "spot": False,
    "apis": ["compute.googleapis.com", "container.googleapis.com"],
    "quotas": {"NVIDIA_L4_GPUS": 4, "GPUS_ALL_REGIONS": 4, "CPUS": 50},
}
QUOTAS = [
    {"metric": "NVIDIA_L4_GPUS", "limit": 4, "usage": 0},
    {"metric": "CPUS", "limit": 100, "usage": 10},
]
READY = {
    "spec": {"nodeName": "node-1"},
    "status": {"conditions": [{"type": "Ready", "status": "True"}]},
}
VOLUME = {
    "metadata": {"name": "pvc-1"},
    "spec": {
        "claimRef": {"namespace": "jax-course"},
        "csi": {"volumeHandle": "projects/p/zones/z/disks/disk-of-pvc-1"},
    },
}

# The answers of a cloud where all is well; the last answer of a list is given again and again.
WELL = {
    "terraform .* init": [""],
    "terraform .* console": [json.dumps(json.dumps(SETTINGS)) + "\n"],
    "terraform .* output -json": [json.dumps({"settings": {"value": SETTINGS}})],
    "gcloud auth list": ["teacher@example.com\n"],
    "gcloud auth application-default": ["a-credential-that-nobody-may-see\n"],
    "gcloud projects describe": ["ACTIVE\n"],
    "gcloud services list": ["compute.googleapis.com\ncontainer.googleapis.com\n"],
    "gcloud compute accelerator-types": ["nvidia-l4\n"],
    "gcloud compute regions describe": [json.dumps({"quotas": QUOTAS})],
    "gcloud compute project-info": [
        json.dumps({"quotas": [{"metric": "GPUS_ALL_REGIONS", "limit": 4, "usage": 0}]})
    ],
    "gcloud container clusters list --format=value": [""],
    "gcloud container clusters list": [json.dumps([{"name": "jax-course"}]), "[]"],
    "gcloud compute (instances|disks|forwarding-rules) list": ["[]"],
    "kubectl .* get pv": [json.dumps({"items": [VOLUME]}), json.dumps({"items": []})],
    "kubectl .* get secret/jax-jupyter-token --ignore": ["", "secret/jax-jupyter-token\n"],
    "kubectl .* get secret/jax-jupyter-token -o json": ["YS1zZWNyZXQ="],  # a-secret
    "kubectl .* get pod/jax-jupyter-0 -o json": [json.dumps(READY)],
    "kubectl .* rollout status": ["partitioned roll out complete\n"],
    "kubectl .* get statefulset/jax-jupyter": ["1"],
    "kubectl .* get configmap/jax-course --ignore": ["configmap/jax-course\n"],
    "kubectl .* get configmap/jax-idle-settings": [json.dumps({"data": {"STOP_AT": ""}})],
    "kubectl .* get pods --selector": ["the-pod Pending", "the-pod Running"],
    "kubectl .* logs --follow": [
        "a line\ncourse: finished with status 0; the results wait 900 s\n"
    ],
    "kubectl .* exec the-pod -- sh -c": ["@tar"],
    "kubectl .* get job/": ["", "SuccessCriteriaMet Complete"],
}

FAKE = """#!{python} -IS
import json, os, pathlib, re, sys
world = pathlib.Path({world!r})
call = " ".join([pathlib.Path(sys.argv[0]).name, *sys.argv[1:]])
given = "" if os.isatty(0) or "-f -" not in call else sys.stdin.read()
calls = world / "calls"
number = len(calls.read_text().splitlines()) if calls.exists() else 0
with calls.open("a") as file:
    file.write(json.dumps([call, given]) + "\\n")
told = json.loads((world / "told.json").read_text())
if number == told["fail_at"] or any(re.search(each, call) for each in told["fail"]):
    sys.exit("a failure that the test ordered")
for pattern, answers in told["answers"].items():
    if re.match(pattern, call):
        seen = world / ("seen-" + re.sub(r"\\W+", "-", pattern))
        count = int(seen.read_text()) if seen.exists() else 0
        seen.write_text(str(count + 1))
        answer = answers[min(count, len(answers) - 1)]
        if answer == "@tar":
            sys.stdout.buffer.write((world / "results.tar.gz").read_bytes())
        else:
            sys.stdout.write(answer)
        break
"""


class Cloud:
    """A checkout of the course with programs that record their calls first on PATH."""

    def __init__(self, root: Path) -> None:
        self.root, self.world, self.bin = root / "course", root / "world", root / "bin"
        self.world.mkdir()
        self.bin.mkdir()
        ignore = shutil.ignore_patterns(
            ".build", "__pycache__", ".terraform*", "*.tfvars", "*.tfstate*"
        )
        for folder in ("deploy", "terraform"):
            shutil.copytree(REPOSITORY / folder, self.root / folder, ignore=ignore)
        for name in ("requirements.txt", ".gitignore"):
            shutil.copy(REPOSITORY / name, self.root / name)
        (self.root / "terraform/terraform.tfvars").write_text('project_id = "course-project-1"\n')
        git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.com"]
        for step in (["init", "-q"], ["add", "."], ["commit", "-qm", "A course"]):
            subprocess.run([*git, *step], cwd=self.root, check=True)
        results = self.world / "42-results"
        results.mkdir()
        (results / "results.json").write_text("{}")
        subprocess.run(
            ["tar", "-czf", self.world / "results.tar.gz", "-C", self.world, "42-results"],
            check=True,
        )
        self.programs("gcloud", "kubectl", "terraform", "gke-gcloud-auth-plugin")
        self.clear()

    def programs(self, *names: str) -> None:
        for path in self.bin.iterdir():
            path.unlink()
        for name in names:
            path = self.bin / name
            path.write_text(FAKE.format(python=sys.executable, world=str(self.world)))
            path.chmod(0o755)
        for name in ("git", "sh"):
            (self.bin / name).symlink_to(shutil.which(name))

    def clear(self) -> None:
        for path in [*self.world.glob("seen-*"), *self.world.glob("calls")]:
            path.unlink()

    def do(self, command: str, answers=None, fail_at=-1, fail=(), **variables: str):
        """Run a command; its calls are in `calls` of the result, what was piped to them in `given`."""
        self.clear()
        told = {"fail_at": fail_at, "fail": list(fail), "answers": {**(answers or {}), **WELL}}
        for pattern in answers or {}:
            told["answers"][pattern] = answers[pattern]
        (self.world / "told.json").write_text(json.dumps(told))
        quick = {"POLL_SECONDS": "0.01", "READY_SECONDS": "0.2", "VOLUME_SECONDS": "0.1"}
        environment = {"PATH": str(self.bin), "HOME": str(self.root.parent), "YES": "1", **quick}
        done = subprocess.run(
            [sys.executable, "-m", "deploy.cluster", command],
            cwd=self.root,
            env={**environment, "RETRY_SECONDS": "0", **variables},
            text=True,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=60,
        )
        calls = self.world / "calls"
        lines = (
            [json.loads(line) for line in calls.read_text().splitlines()] if calls.exists() else []
        )
        done.calls = [call for call, _ in lines]
        done.given = [given for _, given in lines if given]
        return done
