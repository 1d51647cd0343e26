"""Where the tools are that only these tests need, and what to do where one is missing."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
_PATH = os.pathsep.join([os.environ["PATH"], str(REPOSITORY / ".venv-infra/bin")])


def tool(name: str) -> str:
    """The path of a program; without it the test is skipped, or fails if INFRA_TOOLS=required."""
    if found := shutil.which(name, path=_PATH):
        return found
    missing(f"{name} is not installed; `make infra-tools` installs what comes as a Python package")


def missing(reason: str) -> None:
    """Skip with a reason; where the tools must be there, fail instead."""
    if os.environ.get("INFRA_TOOLS") == "required":
        pytest.fail(reason)
    pytest.skip(reason)


def run(*command: str, **options) -> subprocess.CompletedProcess[str]:
    """Run a command in the repository and capture what it says."""
    options = {"cwd": REPOSITORY, "text": True, "capture_output": True, "timeout": 300, **options}
    return subprocess.run(command, **options)
