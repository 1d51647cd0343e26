"""Bring the course into the workspace, and never overwrite what a participant changed.

A record says what was brought, by its hash. A file that still is what was brought is ours to
update or remove; anything else is the participant's, and the course's version goes beside it.
"""

import hashlib
import json
import os
import tarfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from telling import Trouble, say

FIRST_PAGE = "START_HERE.md"


def read(archive: Path, name: str) -> bytes:
    """The content of one file of the course."""
    for found, content, _ in _files(archive):
        if found == name:
            return content
    raise Trouble(f"the course that was sent holds no {name}", "Run `make deploy` again.")


def unpack(archive: Path, folder: Path) -> None:
    """The course as it was sent, into a folder of its own."""
    for name, content, mode in _files(archive):
        _write(folder / name, content, mode)


def update(archive: Path, workspace: Path, kept: Path) -> None:
    """Make the workspace's lessons those of `archive`, except what participants changed."""
    files = list(_files(archive))
    version = _version(archive)
    record = _record(kept)
    if record["version"] == version:
        say(f"the lessons are those of version {version}")
    else:
        say(f"bringing the lessons of version {version} (here: {record['version'] or 'none'})")
    brought: dict[str, Any] = {}
    for name, content, mode in files:
        before = record["files"].get(name, {})
        brought[name] = _place(workspace, name, content, mode, before, version)
    for name in record["files"].keys() - brought.keys():
        _remove(workspace, name, record["files"][name])
    _keep_record(kept, version, brought)


def first_page(text: str, workspace: Path, kept: Path) -> None:
    """A page in place of the lessons; they replace it when they come."""
    content = text.encode()
    _write(workspace / FIRST_PAGE, content, 0o644)
    _keep_record(kept, "", {FIRST_PAGE: {"hash": _hash(content)}})


def _place(
    workspace: Path, name: str, content: bytes, mode: int, before: dict[str, Any], version: str
) -> dict[str, Any]:
    """Bring one file; returns what to record of it."""
    path, new = workspace / name, {"hash": _hash(content)}
    here = _hash_of(path)
    if here in (None, before.get("hash"), new["hash"]):
        if here != new["hash"]:
            _write(path, content, mode)
        _remove_beside(workspace, before)
        return new
    if before.get("hash") == new["hash"]:  # changed here, not in the course: nothing to say
        return before
    beside = str(PurePosixPath(name).with_name(f"new-{version[:7]}-{PurePosixPath(name).name}"))
    _remove_beside(workspace, before)
    _write(workspace / beside, content, mode)
    say(f"{name} was changed here and stays; the course's new version is {beside}")
    return {**new, "beside": beside}


def _remove(workspace: Path, name: str, before: dict[str, Any]) -> None:
    """Remove a file that the course no longer has, unless it was changed here."""
    _remove_beside(workspace, before)
    here = _hash_of(workspace / name)
    if here == before["hash"]:
        (workspace / name).unlink()
    elif here is not None:
        say(f"{name} is no longer part of the course; it was changed here and stays")


def _remove_beside(workspace: Path, before: dict[str, Any]) -> None:
    if (name := before.get("beside")) and _hash_of(workspace / name) == before["hash"]:
        (workspace / name).unlink()


def _files(archive: Path) -> Iterator[tuple[str, bytes, int]]:
    """Name, content and mode of each file; nothing that would land outside the folder."""
    with tarfile.open(archive) as tar:
        for member in tar:
            path = PurePosixPath(member.name)
            if member.isfile() and not path.is_absolute() and ".." not in path.parts:
                content = tar.extractfile(member)
                assert content is not None
                yield str(path), content.read(), 0o755 if member.mode & 0o100 else 0o644


def _version(archive: Path) -> str:
    """The commit, which git writes into the archives that it makes."""
    with tarfile.open(archive) as tar:
        tar.next()
        commit = tar.pax_headers.get("comment", "")
    return commit or hashlib.sha256(archive.read_bytes()).hexdigest()


def _write(path: Path, content: bytes, mode: int) -> None:
    """Write a whole file or none: a full volume leaves what was there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.brought")
    try:
        temporary.write_bytes(content)
        temporary.chmod(mode)
        os.replace(temporary, path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise


def _record(kept: Path) -> dict[str, Any]:
    try:
        record = json.loads((kept / "lessons.json").read_text())
        return {"version": record["version"], "files": dict(record["files"])}
    except FileNotFoundError:
        return {"version": "", "files": {}}
    except (ValueError, KeyError, TypeError):
        # Without it every file counts as changed here: nothing is lost.
        say("the record of the lessons is damaged; files that differ are kept")
        return {"version": "", "files": {}}


def _keep_record(kept: Path, version: str, files: dict[str, Any]) -> None:
    content = json.dumps({"version": version, "files": files}, indent=1, sort_keys=True)
    _write(kept / "lessons.json", content.encode(), 0o644)


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _hash_of(path: Path) -> str | None:
    """The hash of a file; None where nothing is, and something else for what is no file."""
    if path.is_file():
        return _hash(path.read_bytes())
    return "not a file" if path.is_symlink() or path.exists() else None
