"""Call gcloud, kubectl, terraform and git; a call that fails ends the command with its cure."""

import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from deploy.cluster.talk import Stop

REPOSITORY = Path(__file__).resolve().parents[2]
TERRAFORM = ("terraform", "-chdir=terraform")
_WHERE = {
    "gcloud": "https://cloud.google.com/sdk/docs/install",
    "terraform": "https://developer.hashicorp.com/terraform/install",
    "kubectl": "gcloud components install kubectl",
    "gke-gcloud-auth-plugin": "gcloud components install gke-gcloud-auth-plugin",
    "git": "https://git-scm.com/downloads",
}


def need(*names: str) -> None:
    """Stop unless these programs are installed."""
    for name in names:
        if shutil.which(name) is None:
            raise Stop(f"{name} is not installed", f"Install it: {_WHERE[name]}")


def do(command: Sequence[str], cure: str, given: str | None = None) -> None:
    """Run a command that speaks for itself."""
    status = subprocess.run(command, cwd=REPOSITORY, text=True, input=given).returncode
    if status:
        raise Stop(f"`{_short(command)}` failed (status {status})", cure)


def answer(command: Sequence[str], cure: str, given: str | None = None) -> str:
    """What a command prints. Its own words are shown only if it fails."""
    done = ended(command, given)
    if done.returncode:
        said = "\n".join(done.stderr.strip().splitlines()[-12:])
        raise Stop(f"`{_short(command)}` failed (status {done.returncode})\n{said}", cure)
    return done.stdout


def ended(command: Sequence[str], given: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command, and leave it to the caller what its failure means."""
    options = {"input": given} if given is not None else {"stdin": subprocess.DEVNULL}
    return subprocess.run(command, cwd=REPOSITORY, text=True, capture_output=True, **options)


def parsed(command: Sequence[str], cure: str, given: str | None = None) -> Any:
    """The JSON that a command prints."""
    text = answer(command, cure, given)
    try:
        return json.loads(text)
    except ValueError as error:
        raise Stop(
            f"`{_short(command)}` printed something else than JSON: {error}", cure
        ) from error


def setting(name: str, default: str = "") -> str:
    """A variable given to make, without blanks."""
    return os.environ.get(name, "").strip() or default


def _short(command: Sequence[str]) -> str:
    return " ".join(command)
