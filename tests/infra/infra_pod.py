"""A pod without a cluster: its programs, run by a user without rights, on folders in place of volumes."""

import gzip
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

import pytest
from infra_tools import REPOSITORY, missing

USER = 12345  # nobody's number: root's rights must not help
AS_ROOT = os.geteuid() == 0

# A JupyterLab that says how it was started, and ends.
LAB = """
import json, os, sys
import course_utils
names = ("JUPYTER_TOKEN", "PATH", "VIRTUAL_ENV", "HOME")
print("LAB " + json.dumps({
    "arguments": sys.argv[1:], "folder": os.getcwd(), "user": os.getuid(),
    "course": course_utils.__file__, "version": sys.modules["jupyterlab"].VERSION,
    **{name: os.environ.get(name, "") for name in names}}))
"""
# Builds an editable wheel as hatchling does, without being a package that must be fetched.
BACKEND = """
import os, pathlib, zipfile
def build_editable(folder, config_settings=None, metadata_directory=None):
    name = "course-1.0-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(folder, name), "w") as wheel:
        wheel.writestr("course.pth", str(pathlib.Path.cwd()) + "\\n")
        wheel.writestr("course-1.0.dist-info/METADATA", "Metadata-Version: 2.1\\nName: course\\nVersion: 1.0\\n")
        wheel.writestr("course-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr("course-1.0.dist-info/RECORD", "")
    return name
"""
PROJECT = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'


def wheel(folder: Path, version: str) -> str:
    """Write a wheel of a stand-in for JupyterLab; returns its line for a lock with hashes."""
    info = f"jupyterlab-{version}.dist-info"
    files = {
        "jupyterlab/__init__.py": f"VERSION = {version!r}\n",
        "jupyterlab/__main__.py": LAB,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: jupyterlab\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": "",
    }
    path = folder / f"jupyterlab-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as packed:
        for name, content in files.items():
            packed.writestr(zipfile.ZipInfo(name), content)
    return f"jupyterlab=={version} --hash=sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}\n"


def archive(files: dict[str, bytes | str], version: str) -> bytes:
    """A course as `git archive` packs it: the commit stands in the header."""
    buffer = io.BytesIO()
    with tarfile.open(
        fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT, pax_headers={"comment": version}
    ) as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            data = content.encode() if isinstance(content, str) else content
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return gzip.compress(buffer.getvalue(), mtime=0)


def python_for_the_user() -> str:
    """A Python that a user without rights may run, with what makes virtual environments."""
    # It must run itself too, as venv does: a path through root's home fails only then.
    code = (
        "import sys, ensurepip, venv, subprocess; "
        "sys.exit(sys.version_info < (3, 11) or subprocess.call([sys.executable, '-c', '']))"
    )
    for python in (sys._base_executable, "/usr/bin/python3", "/usr/local/bin/python3"):
        if subprocess.run(as_user([python, "-c", code]), capture_output=True).returncode == 0:
            return python
    missing("no Python 3.11 with venv that a user other than root may run")
    raise AssertionError


def as_user(command: list[str]) -> list[str]:
    if not AS_ROOT:
        return command
    drop = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "--no-new-privs"]
    drop += ["--inh-caps=-all", "--bounding-set=-all"]
    return [*drop, *command]


class Pod:
    """Folders as the manifest mounts them, and start.py."""

    def __init__(self, workspace_size: str = "") -> None:
        self.root = Path(tempfile.mkdtemp(prefix="jax-course-pod-"))
        self.root.chmod(0o755)
        self.workspace, self.mount = self.root / "workspace", self.root / "mount"
        self.tmp, self.wheels = self.root / "tmp", self.root / "wheels"
        for folder in (
            self.workspace,
            self.mount / "course",
            self.mount / "lock",
            self.tmp,
            self.wheels,
        ):
            folder.mkdir(parents=True)
        shutil.copytree(REPOSITORY / "deploy/pod", self.mount / "pod")
        self.mounted = bool(workspace_size)
        if workspace_size:
            options = f"size={workspace_size},mode=0755"
            mount = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(self.workspace)]
            if not AS_ROOT or subprocess.run(mount, capture_output=True).returncode:
                self.mounted = False
                self.remove()
                pytest.skip("only root may mount a small volume to fill")
        if AS_ROOT:
            for folder in (self.workspace, self.tmp):
                os.chown(folder, USER, USER)
        self.python = python_for_the_user()
        self.variables = {
            "PATH": os.defpath,
            "HOME": str(self.workspace / ".home"),
            "TMPDIR": str(self.tmp),
            "JUPYTER_RUNTIME_DIR": str(self.tmp / "jupyter"),
            "JUPYTER_TOKEN": "a-secret-of-48-letters",
            "PYTHONDONTWRITEBYTECODE": "1",
            "COURSE_MOUNT": str(self.mount),
            "WORKSPACE": str(self.workspace),
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": str(self.wheels),
        }

    def remove(self) -> None:
        if self.mounted:
            subprocess.run(["umount", str(self.workspace)], check=True)
        shutil.rmtree(self.root)

    def send(self, version: str = "1" * 40, lab: str = "1.0", **files: str | None) -> None:
        """Put a course onto the ConfigMap's mount; a name's / is written __ here."""
        course = {
            "README.md": "A course.\n",
            "notebooks/01_first.ipynb": '{"cells": 1}',
            "notebooks/02_second.ipynb": '{"cells": 2}',
            "course_utils/__init__.py": "",
            "pyproject.toml": PROJECT,
            "backend.py": BACKEND,
            "requirements.txt": wheel(self.wheels, lab),
        }
        course |= {name.replace("__", "/") + ".ipynb": text for name, text in files.items()}
        kept = {name: text for name, text in course.items() if text is not None}
        (self.mount / "course/course.tar.gz").write_bytes(archive(kept, version))

    def send_lock_only(self) -> None:
        lines = wheel(self.wheels, "1.0").encode()
        (self.mount / "lock/requirements.txt.gz").write_bytes(gzip.compress(lines))

    def command(self, *arguments: str) -> list[str]:
        return as_user([self.python, "-u", str(self.mount / "pod/start.py"), *arguments])

    def start(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*(arguments or ("serve",))),
            env={**self.variables, **variables},
            cwd=self.workspace,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=240,
        )

    def lab(self, **variables: str) -> dict:
        """Start, and return what the stand-in for JupyterLab was told."""
        done = self.start(**variables)
        assert done.returncode == 0, done.stdout
        line = next(line for line in done.stdout.splitlines() if line.startswith("LAB "))
        return {**json.loads(line[4:]), "log": done.stdout}

    def write(self, name: str, text: str) -> None:
        """What a participant does in JupyterLab."""
        path = self.workspace / name
        path.write_text(text)
        if AS_ROOT:
            os.chown(path, USER, USER)

    def text(self, name: str) -> str:
        return (self.workspace / name).read_text()

    def environments(self) -> list[Path]:
        return sorted(self.workspace.glob(".course/env-*"))
