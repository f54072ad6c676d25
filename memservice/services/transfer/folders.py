"""All workspaces of a store as files in one folder, with a list of them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from memservice.domain.errors import InvalidInput
from memservice.domain.values import loads, shown
from memservice.services.private_files import replacing
from memservice.services.transfer import checks
from memservice.services.transfer.lines import UnreadableExport

LIST = "workspaces.json"
FORMAT, VERSION = "memservice-workspaces", 1
MAX_LIST = 64 * 2**20
"""Bytes of the list."""


class ExportedWorkspace(Struct, frozen=True):
    """One file of the folder."""

    workspace: str
    file: str
    lines: int


def file_name(number: int, workspace_id: str) -> str:
    """The name of the file of a workspace; ids can be longer than names of files."""
    return f"{number:04}-{workspace_id[:80]}.gz"


def write_list(folder: Path, exported: Sequence[ExportedWorkspace]) -> None:
    """Write the list, last of all files: a folder without it is not complete."""
    content = {
        "format": FORMAT,
        "version": VERSION,
        "workspaces": [asdict(workspace) for workspace in exported],
    }
    with replacing(folder / LIST) as file:
        file.write(json.dumps(content, indent=1).encode() + b"\n")


def read_list(folder: Path) -> list[ExportedWorkspace]:
    """The files of a folder, all of which exist. Raises `UnreadableExport`."""
    path = folder / LIST
    if not path.is_file():
        raise UnreadableExport(
            f"{folder} has no {LIST}: is it the complete result of `memservice export --all`?"
        )
    if path.stat().st_size > MAX_LIST:
        raise UnreadableExport(f"{path} is larger than {MAX_LIST} bytes")
    try:
        content = loads(path.read_bytes())
    except InvalidInput as error:
        raise UnreadableExport(f"{path} is not JSON ({error})") from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise UnreadableExport(f"{path} is not the list of an export of all workspaces")
    if content.get("version") != VERSION:
        raise UnreadableExport(
            f"{path} has version {shown(content.get('version'))}; this release reads {VERSION}"
        )
    entries = content.get("workspaces")
    if not isinstance(entries, list):
        raise UnreadableExport(f"{path} has no list `workspaces`")
    exported = [_entry(path, entry) for entry in entries]
    missing = [one.file for one in exported if not (folder / one.file).is_file()]
    if missing:
        raise UnreadableExport(f"{folder} lacks files: {', '.join(missing[:5])}")
    return exported


def _entry(path: Path, entry: Any) -> ExportedWorkspace:
    if not isinstance(entry, Mapping):
        raise UnreadableExport(f"{path}: an entry of `workspaces` is not an object")
    file, lines = entry.get("file"), entry.get("lines")
    if not isinstance(file, str) or Path(file).name != file or file.startswith("."):
        raise UnreadableExport(
            f"{path}: `file` {shown(file)!r} is not the name of a file beside it"
        )
    if not isinstance(lines, int) or isinstance(lines, bool):
        raise UnreadableExport(f"{path}: `lines` of {file} is not a number")
    return ExportedWorkspace(checks.require_name(entry.get("workspace")), file, lines)
