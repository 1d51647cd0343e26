"""What Terraform was asked for and made: the one source of names, places and numbers."""

import json
import re
from dataclasses import dataclass
from typing import Any

from deploy.cluster.programs import REPOSITORY, TERRAFORM, answer, do, ended, need
from deploy.cluster.talk import Stop

NAMESPACE = "jax-course"
_INIT = "Without the provider nothing can be planned: look at the network, then try again."


@dataclass(frozen=True)
class Settings:
    """The object that Terraform's output `settings` holds."""

    project_id: str
    region: str
    zone: str
    cluster_name: str
    machine_type: str
    gpus: int
    max_gpu_nodes: int
    spot: bool
    apis: list[str]
    quotas: dict[str, int]

    @property
    def place(self) -> str:
        """The cluster, for people."""
        return f"{self.cluster_name} in {self.zone}, project {self.project_id}"

    def kubectl(self, *arguments: str) -> list[str]:
        """A kubectl call that can't hit another cluster than this."""
        context = f"gke_{self.project_id}_{self.zone}_{self.cluster_name}"
        return ["kubectl", f"--context={context}", f"--namespace={NAMESPACE}", *arguments]

    def gcloud(self, *arguments: str) -> list[str]:
        """A gcloud call in this project that asks nothing."""
        return ["gcloud", *arguments, f"--project={self.project_id}", "--quiet"]

    def has(self, what: str) -> bool:
        """Whether something, as kind/name, is in the namespace."""
        get = self.kubectl("get", what, "--ignore-not-found", "-o", "name")
        return bool(answer(get, "May this account read the cluster? Read the lines above.").strip())

    def connect(self) -> None:
        """Let kubectl speak to the cluster."""
        get = ("container", "clusters", "get-credentials", self.cluster_name)
        answer(
            self.gcloud(*get, f"--zone={self.zone}", "--dns-endpoint"),
            "Is the cluster there (`make cluster-up`), and are you logged in (`gcloud auth login`)?",
        )


def asked_for() -> Settings:
    """What terraform.tfvars asks for, as Terraform itself reads it; makes nothing."""
    need("terraform")
    if not (REPOSITORY / "terraform/terraform.tfvars").exists():
        raise Stop(
            "terraform/terraform.tfvars is not there",
            "cp terraform/terraform.tfvars.example terraform/terraform.tfvars, and fill it in.",
        )
    do([*TERRAFORM, "init", "-input=false", "-no-color"], _INIT)
    done = ended([*TERRAFORM, "console"], given="jsonencode(local.settings)\n")
    if done.returncode or not done.stdout.startswith('"'):
        raise Stop(
            f"terraform.tfvars is not right\n{_first_error(done.stderr + done.stdout)}",
            "Mend it; terraform/variables.tf describes every setting.",
        )
    return _settings(json.loads(json.loads(done.stdout)))


def made() -> Settings | None:
    """What Terraform made, None if it made nothing (or all of it is destroyed)."""
    need("terraform")
    done = ended([*TERRAFORM, "output", "-json"])
    if done.returncode:
        raise Stop(
            f"Terraform can't read its state\n{_first_error(done.stderr)}",
            "terraform -chdir=terraform init, then try again.",
        )
    outputs = json.loads(done.stdout or "{}")
    return _settings(outputs["settings"]["value"]) if "settings" in outputs else None


def cluster() -> Settings:
    """The cluster that Terraform made, and a connection to it."""
    need("gcloud", "kubectl", "gke-gcloud-auth-plugin")
    settings = made()
    if settings is None:
        raise Stop("this checkout has made no cluster", "make cluster-up")
    settings.connect()
    return settings


def _settings(values: dict[str, Any]) -> Settings:
    return Settings(**{name: values[name] for name in Settings.__dataclass_fields__})


def _first_error(text: str) -> str:
    plain = re.sub(r"\x1b\[[0-9;]*m", "", text).split("TERRAFORM CRASH")[0]
    lines = [line.strip("│╷╵ !") for line in plain.splitlines()]
    return "\n".join(line for line in lines if line)[-1500:]
