"""Lines of JSON in one spelling, so that equal rows are equal bytes; files of them, plain or
compressed; and the sum of what went by."""

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
"""The path that means standard input, or output."""

GZIP = b"\x1f\x8b"
"""How a compressed file begins."""

MAX_LINE = 128 * 2**20
"""Bytes. More than a request may bring, and so more than a row can hold."""


def written(line: Line) -> bytes:
    return (
        json.dumps(line, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)
        + "\n"
    ).encode()


class UnreadableExport(MemserviceError):
    """A file that is no export, or not a whole one. The message says what is wrong with it."""


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


def moment(value: datetime) -> str:
    return value.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def read_moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def vector_text(vector: Vector) -> str:
    """Little-endian float32, in base64."""
    return base64.b64encode(vector.astype("<f4").tobytes()).decode("ascii")


def read_vector(text: str, dimension: int) -> Vector:
    """Raises UnreadableExport for one that is not of so many finite numbers."""
    import numpy as np

    try:
        vector = np.frombuffer(base64.b64decode(text, validate=True), dtype="<f4").astype(
            np.float32
        )
    except ValueError as error:
        raise UnreadableExport(f"a vector cannot be read: {error}") from error
    if len(vector) != dimension or not np.isfinite(vector).all():
        raise UnreadableExport(f"a vector is not of {dimension} finite numbers, as its space says")
    return vector


@contextmanager
def writing(path: str) -> Iterator[IO[bytes]]:
    """A file that appears under its name when it is whole, and that only its owner may read.
    Compressed if the name ends in `.gz`.

    What goes to standard output is kept in a temporary file until it is whole: a reader that is
    slow, or pauses, would keep the view of the store open meanwhile, and PostgreSQL ends a view
    that is left idle for a minute.
    """
    if path == STANDARD:
        with temporary() as kept:
            yield kept
            kept.seek(0)
            shutil.copyfileobj(kept, sys.stdout.buffer)
            sys.stdout.buffer.flush()
        return
    with replacing(Path(path)) as plain:
        if path.endswith(".gz"):
            with gzip.GzipFile(filename="", mode="wb", fileobj=plain, mtime=0) as packed:
                yield cast(IO[bytes], packed)
        else:
            yield plain


class Lines:
    """The lines of a file, from its beginning each time they are asked for. Compressed or not: its
    first bytes tell, whatever its name."""

    def __init__(self, file: IO[bytes], name: str) -> None:
        """`file` can be sought in; `name` is what messages call it."""
        self._file = file
        self._name = name

    def __iter__(self) -> Iterator[bytes]:
        self._file.seek(0)
        packed = self._file.read(len(GZIP)) == GZIP
        self._file.seek(0)
        if packed:
            with gzip.GzipFile(fileobj=self._file, mode="rb") as opened:
                yield from _sound(_bounded(cast(IO[bytes], opened)), self._name)
        else:
            yield from _bounded(self._file)


@contextmanager
def reading(path: str) -> Iterator[Lines]:
    """The lines of a file, or of standard input. What can be read only once is put into a temporary
    file first."""
    if path == STANDARD:
        with _kept(sys.stdin.buffer) as file:
            yield Lines(file, "standard input")
        return
    with Path(path).open("rb") as given:
        if given.seekable():
            yield Lines(given, path)
            return
        with _kept(given) as file:
            yield Lines(file, path)


@contextmanager
def _kept(given: IO[bytes]) -> Iterator[IO[bytes]]:
    with tempfile.TemporaryFile() as file:
        shutil.copyfileobj(given, file)
        yield file


def _bounded(file: IO[bytes]) -> Iterator[bytes]:
    """The lines, none of which is held whole if it is longer than any row: a small file can unpack
    into one of gigabytes."""
    number = 0
    while line := file.readline(MAX_LINE + 1):
        number += 1
        if len(line) > MAX_LINE:
            raise UnreadableExport(
                f"line {number} is longer than {MAX_LINE} bytes, which no row is"
            )
        yield line


def _sound(lines: Iterator[bytes], path: str) -> Iterator[bytes]:
    try:
        yield from lines
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise UnreadableExport(f"{path} is cut off or damaged: {error}") from error


def parsed(data: bytes, number: int) -> Line:
    """One line. Raises UnreadableExport that says which."""
    try:
        line = loads(data)
        if b"\\u0000" in data:
            line = strip_nul(line)
    except InvalidInput as error:
        raise UnreadableExport(
            f"line {number} is no JSON ({error}): is the file cut off?"
        ) from error
    if not isinstance(line, dict) or not isinstance(line.get("type"), str):
        raise UnreadableExport(f"line {number} is no row of an export: it has no `type`")
    return line
