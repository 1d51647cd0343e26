"""`make cluster-up`: check, plan, ask, make."""

from deploy.cluster.preflight import preflight
from deploy.cluster.programs import TERRAFORM, do
from deploy.cluster.talk import ask, plan, say

_PLAN = "Read the lines above; terraform/variables.tf describes every setting."
_APPLY = (
    "What was made so far is kept: `make cluster-up` goes on from there, `make cluster-down` takes "
    "it down. deploy/README.md has a table of failures."
)


def up() -> None:
    """Make the cluster, or bring it to what terraform.tfvars says now."""
    settings = preflight()
    plan(
        f"This makes {settings.place}:",
        [
            "a network with Cloud NAT, a private cluster, one e2-standard-2 node: these cost money "
            "from now until `make cluster-down`",
            f"a pool of 0 to {settings.max_gpu_nodes} GPU nodes ({settings.machine_type}): "
            "they cost only while a server or a Job runs",
            "it takes 10 to 12 minutes",
        ],
    )
    do([*TERRAFORM, "plan", "-input=false", "-no-color", "-out=course.tfplan"], _PLAN)
    ask("Make it?")
    do([*TERRAFORM, "apply", "-input=false", "-no-color", "course.tfplan"], _APPLY)
    settings.connect()
    say("The cluster is there. Next: make deploy")
