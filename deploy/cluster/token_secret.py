"""JupyterLab's token: made once, kept in a Secret, shown to whoever may read that."""

import base64
import json
import secrets

from deploy.cluster.programs import answer, do
from deploy.cluster.settings import NAMESPACE, Settings
from deploy.cluster.talk import Stop

SECRET = "jax-jupyter-token"
_CURE = "May this account read and make Secrets in the cluster? Read the lines above."


def make(settings: Settings) -> None:
    """A Secret with a random token, once; it goes through a pipe and is never printed."""
    if settings.has(f"secret/{SECRET}"):
        return
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": SECRET, "namespace": NAMESPACE},
        "stringData": {"token": secrets.token_hex(24)},  # without a newline at its end
    }
    do(settings.kubectl("create", "-f", "-"), _CURE, given=json.dumps(secret))


def read(settings: Settings) -> str:
    """The Secret's token, or the one that a pod without a Secret has made."""
    if settings.has(f"secret/{SECRET}"):
        where = ("get", f"secret/{SECRET}", "-o", "jsonpath={.data.token}")
        token = base64.b64decode(answer(settings.kubectl(*where), _CURE)).decode().strip()
    else:
        kept = ("exec", "jax-jupyter-0", "--", "cat", "/workspace/.course/token")
        token = answer(settings.kubectl(*kept), "make deploy makes a token.").strip()
    if not token:
        raise Stop("the token is empty", f"kubectl delete secret {SECRET}, then make deploy.")
    return token
