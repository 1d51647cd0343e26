"""Run a snippet in a Python of its own, for promises about imports and about JAX's start."""

import os
import subprocess
import sys
import textwrap

# The suite's own choice of devices must not reach a process that makes its own.
_FROM_THE_SUITE = ("JAX_PLATFORMS", "JAX_NUM_CPU_DEVICES", "XLA_FLAGS", "EXPECT_GPUS")


def run_python(code: str, **environment: str) -> subprocess.CompletedProcess:
    """Run `code` with a clean JAX environment plus `environment`; capture its output as text."""
    clean = {name: value for name, value in os.environ.items() if name not in _FROM_THE_SUITE}
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env=clean | {"JAX_PLATFORMS": "cpu"} | environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
