"""The file of a history: plain, or a member of a zip archive."""

from __future__ import annotations

import io
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

from memservice.domain.values import shown
from memservice.services.transfer.lines import UnreadableExport

Progress = Callable[[int, int], None]
"""`progress(read, total)`, in bytes."""
CONVERSATIONS = re.compile(r"(.*/)?conversations(-\d+)?\.json")
"""Names of the members of data exports that have conversations."""
MAX_SHOWN = 8


@contextmanager
def opened(path: Path, progress: Progress) -> Iterator[Sequence[IO[bytes]]]:
    """The file, or the members of the archive that have conversations, in the order of their
    names. Raises `UnreadableExport`."""
    with path.open("rb") as file:
        if not zipfile.is_zipfile(file):
            file.seek(0)
            yield [_counted(cast(Any, file), progress, path.stat().st_size)]
            return
        try:
            with zipfile.ZipFile(file) as archive:
                yield _members(archive, path, progress)
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
            raise UnreadableExport(f"{path} is damaged: {error}") from error
        except RuntimeError as error:
            if "password" not in str(error):
                raise
            raise UnreadableExport(f"{path} is encrypted: unpack it first") from error


def _members(archive: zipfile.ZipFile, path: Path, progress: Progress) -> list[IO[bytes]]:
    members = sorted(
        (info for info in archive.infolist() if CONVERSATIONS.fullmatch(info.filename)),
        key=lambda info: info.filename,
    )
    if not members:
        names = ", ".join(shown(name) for name in archive.namelist()[:MAX_SHOWN])
        raise UnreadableExport(f"{path} has no conversations.json, but {names or 'nothing'}")
    total = sum(info.file_size for info in members)
    bytes_before = 0
    files: list[IO[bytes]] = []
    for info in members:
        files.append(_counted(archive.open(info), progress, total, bytes_before))
        bytes_before += info.file_size
    return files


def _counted(file: Any, progress: Progress, total: int, before: int = 0) -> IO[bytes]:
    return cast(IO[bytes], io.BufferedReader(_Counted(file, progress, total, before), 2**20))


class _Counted(io.RawIOBase):
    """A file that reports how much of it was read."""

    def __init__(self, file: IO[bytes], progress: Progress, total: int, before: int) -> None:
        self._file = file
        self._progress = progress
        self._total = max(1, total)
        self._read = before

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        data = self._file.read(len(buffer))
        buffer[: len(data)] = data
        self._read += len(data)
        self._progress(min(self._read, self._total), self._total)
        return len(data)
