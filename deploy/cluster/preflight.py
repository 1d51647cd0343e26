"""Is everything there that `make cluster-up` needs? Reads, and changes nothing."""

from collections.abc import Callable

from deploy.cluster.programs import answer, ended, need, parsed
from deploy.cluster.settings import Settings, asked_for
from deploy.cluster.talk import Stop, say

_QUOTAS = (
    "https://cloud.google.com/docs/quotas/view-manage (ask days ahead: GPUs are granted by hand)"
)


def preflight() -> Settings:
    """Check one thing after the other; stop at the first that is not right."""
    say("Checking tools, login, services, GPUs and quotas. This reads only.")
    need("gcloud", "kubectl", "gke-gcloud-auth-plugin", "git")
    settings = asked_for()
    say(f"  asked for: {settings.place}")
    say(
        f"             up to {settings.max_gpu_nodes} x {settings.machine_type} "
        f"({settings.gpus} x L4 each{', spot' if settings.spot else ''})"
    )
    checks: list[Callable[[Settings], str]] = [_login, _project, _services, _zone, _quotas]
    for check in checks:
        say(f"  ok: {check(settings)}")
    return settings


def _login(settings: Settings) -> str:
    command = ["gcloud", "auth", "list", "--filter=status:ACTIVE", "--format=value(account)"]
    account = answer(command, "gcloud auth login").strip()
    if not account:
        raise Stop("nobody is logged in to gcloud", "gcloud auth login")
    # It prints a credential, which is neither kept nor shown.
    if ended(["gcloud", "auth", "application-default", "print-access-token"]).returncode:
        raise Stop("Terraform has no credentials", "gcloud auth application-default login")
    return f"logged in as {account}"


def _project(settings: Settings) -> str:
    command = [
        "gcloud",
        "projects",
        "describe",
        settings.project_id,
        "--format=value(lifecycleState)",
    ]
    state = answer(
        command, "Is project_id right, and may this account see it? gcloud projects list"
    )
    if state.strip() != "ACTIVE":
        raise Stop(
            f"project {settings.project_id} is {state.strip()}", "Choose another project_id."
        )
    return f"project {settings.project_id} is active"


def _services(settings: Settings) -> str:
    command = settings.gcloud("services", "list", "--enabled", "--format=value(config.name)")
    enabled = answer(command, "gcloud services enable serviceusage.googleapis.com").split()
    missing = [api for api in settings.apis if api not in enabled]
    enable = f"gcloud services enable {' '.join(missing)} --project={settings.project_id}"
    if "compute.googleapis.com" in missing:
        raise Stop("quotas can't be read: the Compute service is off", f"{enable} (is billing on?)")
    return f"services (Terraform will enable {', '.join(missing)})" if missing else "services"


def _zone(settings: Settings) -> str:
    name = f"--filter=name=nvidia-l4 AND zone:{settings.zone}"
    command = settings.gcloud("compute", "accelerator-types", "list", name, "--format=value(name)")
    if not answer(command, "Look at the zone: gcloud compute zones list").strip():
        raise Stop(
            f"{settings.zone} has no L4 GPUs",
            "Choose a zone of: gcloud compute accelerator-types list --filter=name=nvidia-l4",
        )
    kind = ("compute", "machine-types", "describe", settings.machine_type)
    answer(
        settings.gcloud(*kind, f"--zone={settings.zone}", "--format=value(name)"),
        f"{settings.zone} may not have {settings.machine_type}: choose another zone.",
    )
    return f"{settings.zone} has L4 GPUs and {settings.machine_type}"


def _quotas(settings: Settings) -> str:
    cure = "May this account read Compute Engine in the project?"
    region = ("compute", "regions", "describe", settings.region)
    quotas = parsed(settings.gcloud(*region, "--format=json"), cure)["quotas"]
    project = settings.gcloud("compute", "project-info", "describe", "--format=json")
    quotas = {each["metric"]: each for each in [*parsed(project, cure)["quotas"], *quotas]}
    # What the cluster itself takes already must not count against it a second time.
    exists = _cluster_exists(settings)
    short = []
    for metric, wanted in settings.quotas.items():
        quota = quotas.get(metric, {"limit": 0, "usage": 0})
        free = quota["limit"] - (0 if exists else quota["usage"])
        if free < wanted:
            short.append(f"{metric}: {wanted:g} wanted, {free:g} free of {quota['limit']:g}")
    if short:
        raise Stop(f"quotas are too small in {settings.region}:\n  " + "\n  ".join(short), _QUOTAS)
    return f"quotas: {', '.join(f'{metric} {n:g}' for metric, n in settings.quotas.items())}"


def _cluster_exists(settings: Settings) -> bool:
    command = settings.gcloud("container", "clusters", "list", "--format=value(name)")
    done = ended(command)  # fails while the service is off, and then there is none
    return settings.cluster_name in done.stdout.split()
