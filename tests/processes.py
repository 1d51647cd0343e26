"""Run a snippet in a Python of its own, for promises about imports and about JAX's start."""

import os
import subprocess
import sys
import textwrap

# The suite's own choice of devices must not reach a process that makes its own.
_FROM_THE_SUITE = ("JAX_PLATFORMS", "JAX_NUM_CPU_DEVICES", "XLA_FLAGS", "EXPECT_GPUS")


def clean_environment() -> dict[str, str]:
    """This environment without the suite's own choice of devices, on the CPU."""
    kept = {name: value for name, value in os.environ.items() if name not in _FROM_THE_SUITE}
    return kept | {"JAX_PLATFORMS": "cpu"}


def run_python(code: str, **environment: str) -> subprocess.CompletedProcess:
    """Run `code` with a clean JAX environment plus `environment`; capture its output as text."""
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env=clean_environment() | environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
