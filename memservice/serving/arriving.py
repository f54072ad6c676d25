"""A request while it arrives: what came of it, and whether all of it is there. No socket, no
thread.

The bytes are kept as they came and gunicorn parses them afterwards: what is decided here is only
when it may begin. A head that two readers could take in two ways is handed on at once, for gunicorn
to refuse.
"""

from __future__ import annotations

import logging
import re
import tempfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from io import FileIO

log = logging.getLogger("memservice.server")

HEAD_END = b"\r\n\r\n"
MAX_HEAD = 2**20 + 2**17
"""Bytes of a head that are collected: a request line of the greatest length, and fields."""
MAX_IN_MEMORY = 2**17
"""Bytes of one request that are kept in memory; the rest is on disk."""
MAX_CHUNK_LINE = 2**16

_LENGTH = re.compile(rb"^content-length:([^\r\n]*)\r$", re.I | re.M)
_CODED = re.compile(rb"^transfer-encoding:", re.I | re.M)
_EXPECTS = re.compile(rb"^expect:[ \t]*100-continue[ \t]*\r$", re.I | re.M)


class Kept:
    """Bytes that came and were not taken yet, in order: what is on disk comes before what is in
    memory."""

    def __init__(self) -> None:
        self._memory = bytearray()
        self._file: FileIO | None = None
        self._on_disk = 0
        self.full = False
        """Nothing more can be written to disk."""

    def __len__(self) -> int:
        return self._on_disk + len(self._memory)

    def add(self, data: bytes) -> None:
        self._memory += data
        if len(self._memory) > MAX_IN_MEMORY and not self.full:
            try:
                self._write()
            except OSError as error:
                log.error("the body of a request cannot be kept on disk: %s", error)
                self.full = True

    def _write(self) -> None:
        if self._file is None:
            self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115  # closed by `close`
        while self._memory:
            written = self._file.write(self._memory)
            del self._memory[:written]
            self._on_disk += written

    def rewind(self) -> None:
        """Nothing more is added: from now on it is taken."""
        if self._file is not None:
            self._file.seek(0)

    def take(self, size: int) -> bytes:
        if self._file is not None and self._on_disk:
            data = self._file.read(min(size, self._on_disk))
            self._on_disk -= len(data)
        else:
            data = bytes(self._memory[:size])
            del self._memory[:size]
        if not self:
            self.close()
        return data

    def close(self) -> None:
        self._memory.clear()
        self._on_disk = 0
        if self._file is not None:
            self._file.close()
            self._file = None


class Arriving:
    """Fed with what comes on a connection, from the beginning of a request on."""

    def __init__(self, max_body: int) -> None:
        self.kept = Kept()
        self.came = 0
        """Bytes, in all."""
        self.head_whole = False
        self.expects = False
        """The client waits for `100 Continue` before it sends the body."""
        self.ready = False
        """Nothing more is waited for: the request is whole, or what is wrong with it can be said
        already."""
        self._max_body = max_body
        self._head = bytearray()
        self._missing = 0
        self._chunks: _Chunks | None = None

    def add(self, data: bytes) -> None:
        self.kept.add(data)
        self.came += len(data)
        if self.head_whole:
            self._add_body(data)
            return
        begin = max(0, len(self._head) - len(HEAD_END) + 1)
        self._head += data
        # one empty line may come before a request (RFC 9112, section 2.2)
        if self._head.startswith(b"\r\n"):
            begin = max(begin, 2)
        end = self._head.find(HEAD_END, begin)
        if end < 0:
            self.ready = len(self._head) > MAX_HEAD
            return
        body = bytes(self._head[end + len(HEAD_END) :])
        self._begin_body(bytes(self._head[: end + 2]))
        self._head.clear()
        if not self.ready:
            self._add_body(body)

    def _begin_body(self, head: bytes) -> None:
        self.head_whole = True
        lengths, coded = (
            [length.strip(b" \t") for length in _LENGTH.findall(head)],
            _CODED.search(head),
        )
        if coded and not lengths:
            self._chunks = _Chunks()
        elif len(lengths) == 1 and not coded and lengths[0].isdigit() and len(lengths[0]) < 20:
            self._missing = int(lengths[0])
            self.ready = self._missing == 0 or self._missing > self._max_body
        else:
            self.ready = True
        self.expects = not self.ready and _EXPECTS.search(head) is not None

    def _add_body(self, data: bytes) -> None:
        if self._chunks is None:
            self._missing -= len(data)
            self.ready = self._missing <= 0
        else:
            self.ready = self._chunks.ends_in(data) or self.came > self._max_body + MAX_HEAD


class _Chunks:
    """Finds the end of a chunked body (RFC 9112, section 7.1)."""

    def __init__(self) -> None:
        self._data = 0
        """Bytes of the current chunk that are still to come, with the end of line after them."""
        self._line = bytearray()
        self._trailers = False

    def ends_in(self, piece: bytes) -> bool:
        """Whether the body is over with these bytes, or is none."""
        at = 0
        while at < len(piece):
            if self._data:
                step = min(self._data, len(piece) - at)
                self._data -= step
                at += step
                continue
            end = piece.find(b"\n", at)
            stop = len(piece) if end < 0 else end + 1
            self._line += piece[at:stop]
            at = stop
            if len(self._line) > MAX_CHUNK_LINE:
                return True
            if end >= 0 and self._over():
                return True
        return False

    def _over(self) -> bool:
        line = bytes(self._line).rstrip(b"\r\n")
        self._line.clear()
        if self._trailers:
            return not line
        try:
            size = int(line.partition(b";")[0].strip() or b"-", 16)
        except ValueError:
            return True
        self._trailers = size == 0
        self._data = size + 2 if size else 0
        return size < 0
