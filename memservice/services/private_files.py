"""Files that hold what users wrote, or secrets: only the user that the process runs as may read
them."""

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
    """A file that cannot be made or written. The message names it and says why."""


@contextmanager
def replacing(target: Path) -> Iterator[IO[bytes]]:
    """A new file that takes the place of `target` when it is whole and on the disk; `target` stays
    as it was if that fails.

    It is written under a name of its own, so two that write to one target do not meet: the last one
    to end wins. Raises Unwritable.
    """
    if not target.parent.is_dir():
        raise Unwritable(f"{target} cannot be written: there is no folder {target.parent}")
    part = target.with_name(f".memservice-{secrets.token_hex(8)}.part")
    with _named(str(target)):
        opened = os.open(
            part, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, RIGHTS
        )
    try:
        with io.BufferedWriter(_Reporting(opened, str(target))) as file:
            yield file
            file.flush()
            with _named(str(target)):
                os.fsync(opened)
        with _named(str(target)):
            part.replace(target)
            _sync_folder(target.parent)
    finally:
        part.unlink(missing_ok=True)


def append(path: Path) -> IO[str]:
    """A file to add text to. A new one is private; one that exists keeps its rights. No link to a
    file that does not exist is followed."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC
    try:
        opened = os.open(path, flags)
    except FileNotFoundError:
        try:
            opened = os.open(path, flags | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, RIGHTS)
        except FileExistsError:  # another process has made it meanwhile, or it is a link to nothing
            opened = os.open(path, flags | os.O_NOFOLLOW)
    return os.fdopen(opened, "a", encoding="utf-8", errors="surrogatepass")


@contextmanager
def temporary() -> Iterator[IO[bytes]]:
    """A file without a name, to be written and then read. Raises Unwritable that says where it
    lies."""
    name = f"a temporary file in {tempfile.gettempdir()}"
    with _named(name), tempfile.TemporaryFile(buffering=0) as made:
        opened = os.dup(made.fileno())
    with io.BufferedRandom(_Reporting(opened, name)) as file:
        yield file


class _Reporting(io.FileIO):
    """Says which file it was that could not be written: a full disk is noticed in the middle of
    it."""

    def __init__(self, opened: int, name: str) -> None:
        super().__init__(opened, "r+b")
        self._called = name

    def write(self, data: Any, /) -> int:
        with _named(self._called):
            return super().write(data)


@contextmanager
def _named(name: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise Unwritable(f"{name} cannot be written: {error.strerror or error}") from error


def _sync_folder(folder: Path) -> None:
    """So that the new name survives a power cut as well."""
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
