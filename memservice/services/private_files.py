"""Files with users' texts or secrets: readable only by the user of the process."""

from __future__ import annotations

import io
import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from memservice.domain.errors import MemserviceError

RIGHTS = 0o600


class Unwritable(MemserviceError):
    """A file cannot be created or written. The message contains its name and the reason."""


@contextmanager
def replacing(target: Path) -> Iterator[IO[bytes]]:
    """Write a new file that replaces `target` when it is complete and on the disk; after a failure
    `target` is unchanged.

    It is written under a unique name, so two writers of one target do not interfere: the last one
    to finish wins. Raises Unwritable.
    """
    if not target.parent.is_dir():
        raise Unwritable(f"{target} cannot be written: there is no folder {target.parent}")
    part = target.with_name(f".memservice-{secrets.token_hex(8)}.part")
    with _errors_with(str(target)):
        opened = os.open(
            part, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, RIGHTS
        )
    try:
        with io.BufferedWriter(_Reporting(opened, str(target))) as file:
            yield file
            file.flush()
            with _errors_with(str(target)):
                os.fsync(opened)
        with _errors_with(str(target)):
            part.replace(target)
            _sync_folder(target.parent)
    finally:
        part.unlink(missing_ok=True)


def append(path: Path) -> IO[str]:
    """Open a file to append text. A new file is private; an existing one keeps its permissions.
    Never follows a dangling link."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC
    try:
        opened = os.open(path, flags)
    except FileNotFoundError:
        try:
            opened = os.open(path, flags | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, RIGHTS)
        except FileExistsError:  # another process has created it, or it is a dangling link
            opened = os.open(path, flags | os.O_NOFOLLOW)
    return os.fdopen(opened, "a", encoding="utf-8", errors="surrogatepass")


@contextmanager
def temporary() -> Iterator[IO[bytes]]:
    """A temporary file without a name, for writing and then reading. Raises Unwritable with its
    location."""
    name = f"a temporary file in {tempfile.gettempdir()}"
    with _errors_with(name), tempfile.TemporaryFile(buffering=0) as unnamed:
        opened = os.dup(unnamed.fileno())
    with io.BufferedRandom(_Reporting(opened, name)) as file:
        yield file


class _Reporting(io.FileIO):
    """A file whose errors name it: a full disk is only detected during a write."""

    def __init__(self, opened: int, name: str) -> None:
        super().__init__(opened, "r+b")
        self._name = name

    def write(self, data: Any, /) -> int:
        with _errors_with(self._name):
            return super().write(data)


@contextmanager
def _errors_with(name: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise Unwritable(f"{name} cannot be written: {error.strerror or error}") from error


def _sync_folder(folder: Path) -> None:
    """Sync the folder, so that the new name survives a power failure."""
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
