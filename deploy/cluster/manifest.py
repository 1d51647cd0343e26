"""Write deploy/jupyter.yaml: the base in one file, with the locked packages, for kubectl alone."""

import base64
import gzip
import json

from deploy.cluster.programs import REPOSITORY, answer, need
from deploy.cluster.talk import say

MANIFEST = REPOSITORY / "deploy/jupyter.yaml"
HEAD = """\
# Made by `make jupyter-yaml` from deploy/base and requirements.txt; edit those. Brings JupyterLab and
# the environment up by itself (kubectl apply -f deploy/jupyter.yaml); `make deploy` brings the lessons.
"""


def write() -> None:
    """Render the base and put the lock beside it, packed: whole, it is too large for kubectl apply."""
    need("kubectl")
    base = answer(["kubectl", "kustomize", "deploy/base"], "Mend deploy/base.")
    packed = gzip.compress((REPOSITORY / "requirements.txt").read_bytes(), mtime=0)
    lock = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "jax-course-lock", "namespace": "jax-course"},
        "binaryData": {"requirements.txt.gz": base64.b64encode(packed).decode()},
    }
    # The namespace, then the lock, then what needs it.
    namespace, rest = base.split("---\n", 1)
    MANIFEST.write_text(f"{HEAD}{namespace}---\n{json.dumps(lock, indent=2)}\n---\n{rest}")
    say(f"wrote {MANIFEST.relative_to(REPOSITORY)}")
