"""JSON lines in a canonical form, so that equal rows have equal bytes; files of them, plain or
compressed; and their checksum."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import shutil
import sys
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from memservice.domain.errors import InvalidInput, MemserviceError
from memservice.domain.values import loads, strip_nul
from memservice.services.private_files import replacing, temporary

if TYPE_CHECKING:
    from memservice.spi.vectors import Vector

Line = dict[str, Any]

FORMAT, VERSION = "memservice-workspace", 1
HEADER, END = "header", "end"
STANDARD = "-"
"""The path for standard input or output."""

GZIP = b"\x1f\x8b"
"""Magic number of a compressed file."""

MAX_LINE = 128 * 2**20
"""Maximum bytes of a line: more than a request, and so a row, can contain."""


def format_line(line: Line) -> bytes:
    return (
        json.dumps(line, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)
        + "\n"
    ).encode()


class UnreadableExport(MemserviceError):
    """The file is not a complete export. The message describes the error."""


class Sum:
    """Counts lines and digests their bytes."""

    def __init__(self) -> None:
        self.lines = 0
        self._digest = hashlib.sha256()

    def add(self, data: bytes) -> None:
        self.lines += 1
        self._digest.update(data)

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()

    def end(self) -> Line:
        return {"type": END, "lines": self.lines, "sha256": self.sha256}


def format_time(value: datetime) -> str:
    return value.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def parse_time(text: str) -> datetime:
    return datetime.fromisoformat(text)


def vector_text(vector: Vector) -> str:
    """Little-endian float32, in base64."""
    return base64.b64encode(vector.astype("<f4").tobytes()).decode("ascii")


def read_vector(text: str, dimension: int) -> Vector:
    """Raises UnreadableExport unless the vector has exactly this number of finite values."""
    import numpy as np

    try:
        vector = np.frombuffer(base64.b64decode(text, validate=True), dtype="<f4").astype(
            np.float32
        )
    except ValueError as error:
        raise UnreadableExport(f"a vector cannot be read: {error}") from error
    if len(vector) != dimension or not np.isfinite(vector).all():
        raise UnreadableExport(
            f"a vector does not have the {dimension} finite numbers of its space"
        )
    return vector


@contextmanager
def writing(path: str) -> Iterator[IO[bytes]]:
    """Open a file that gets its name only when it is complete, and that only its owner may read.
    Compressed if the name ends in `.gz`.

    Standard output is written from a temporary file when it is complete: a slow reader would
    otherwise keep the transaction open, and PostgreSQL ends one that is idle for a minute.
    """
    if path == STANDARD:
        with temporary() as buffer:
            yield buffer
            buffer.seek(0)
            shutil.copyfileobj(buffer, sys.stdout.buffer)
            sys.stdout.buffer.flush()
        return
    with replacing(Path(path)) as plain:
        if path.endswith(".gz"):
            with gzip.GzipFile(filename="", mode="wb", fileobj=plain, mtime=0) as packed:
                yield cast(IO[bytes], packed)
        else:
            yield plain


class Lines:
    """The lines of a file, from its beginning for each iteration. Its first bytes decide whether it
    is compressed."""

    def __init__(self, file: IO[bytes], name: str) -> None:
        """`file` is seekable; `name` is its name in messages."""
        self._file = file
        self._name = name

    def __iter__(self) -> Iterator[bytes]:
        self._file.seek(0)
        packed = self._file.read(len(GZIP)) == GZIP
        self._file.seek(0)
        if packed:
            with gzip.GzipFile(fileobj=self._file, mode="rb") as opened:
                yield from _intact(_bounded(cast(IO[bytes], opened)), self._name)
        else:
            yield from _bounded(self._file)


@contextmanager
def reading(path: str) -> Iterator[Lines]:
    """The lines of a file, or of standard input. A stream that is not seekable is copied to a
    temporary file first."""
    if path == STANDARD:
        with _copied(sys.stdin.buffer) as file:
            yield Lines(file, "standard input")
        return
    with Path(path).open("rb") as source:
        if source.seekable():
            yield Lines(source, path)
            return
        with _copied(source) as file:
            yield Lines(file, path)


@contextmanager
def _copied(source: IO[bytes]) -> Iterator[IO[bytes]]:
    with tempfile.TemporaryFile() as file:
        shutil.copyfileobj(source, file)
        yield file


def _bounded(file: IO[bytes]) -> Iterator[bytes]:
    """The lines. A line longer than any row is never in memory as a whole: a small file can unpack
    into a line of gigabytes."""
    number = 0
    while line := file.readline(MAX_LINE + 1):
        number += 1
        if len(line) > MAX_LINE:
            raise UnreadableExport(
                f"line {number} is longer than {MAX_LINE} bytes, the maximum for a row"
            )
        yield line


def _intact(lines: Iterator[bytes], path: str) -> Iterator[bytes]:
    try:
        yield from lines
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise UnreadableExport(f"{path} is cut off or damaged: {error}") from error


def parse_line(data: bytes, number: int) -> Line:
    """Parse one line. Raises UnreadableExport with its number."""
    try:
        line = loads(data)
        if b"\\u0000" in data:
            line = strip_nul(line)
    except InvalidInput as error:
        raise UnreadableExport(
            f"line {number} is not JSON ({error}): is the file cut off?"
        ) from error
    if not isinstance(line, dict) or not isinstance(line.get("type"), str):
        raise UnreadableExport(f"line {number} is not a row of an export: it has no `type`")
    return line
