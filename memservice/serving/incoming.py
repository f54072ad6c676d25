"""A request while it arrives: its bytes so far, and whether it is complete. No socket, no thread.

The bytes are buffered unchanged, and gunicorn parses them later: this module only decides when that
can begin. An ambiguous head is handed over at once, so that gunicorn rejects it.
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
"""Maximum bytes of a head: a request line of maximum length, and header fields."""
MAX_IN_MEMORY = 2**17
"""Bytes of one request that are buffered in memory; the rest is on disk."""
MAX_CHUNK_LINE = 2**16

# In a head in lower case, which is searched several times as fast as with re.I.
_LENGTH = re.compile(rb"\ncontent-length:([^\r\n]*)\r$", re.M)
_ENCODED = b"\ntransfer-encoding:"
_EXPECTS_CONTINUE = re.compile(rb"^expect:[ \t]*100-continue[ \t]*\r$", re.I | re.M)


class RequestBuffer:
    """Received bytes that were not taken yet, in order: those on disk come before those in
    memory."""

    def __init__(self) -> None:
        self._memory = bytearray()
        self._file: FileIO | None = None
        self._on_disk = 0
        self.full = False
        """A write to disk failed, so the buffer stays in memory."""

    def __len__(self) -> int:
        return self._on_disk + len(self._memory)

    def add(self, data: bytes) -> None:
        self._memory += data
        if len(self._memory) > MAX_IN_MEMORY and not self.full:
            try:
                self._write()
            except OSError as error:
                log.error("cannot buffer the body of a request on disk: %s", error)
                self.full = True

    def _write(self) -> None:
        if self._file is None:
            self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115  # closed by `close`
        while self._memory:
            written = self._file.write(self._memory)
            del self._memory[:written]
            self._on_disk += written

    def rewind(self) -> None:
        """Switch from adding to taking."""
        if self._file is not None:
            self._file.seek(0)

    def peek(self, size: int) -> bytes:
        """The next bytes, which stay in the buffer; fewer if they are not all in memory."""
        return b"" if self._on_disk else bytes(self._memory[:size])

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


class IncomingRequest:
    """Receives the bytes of a connection, from the start of a request on."""

    def __init__(self, max_body: int) -> None:
        self.buffer = RequestBuffer()
        self.received_bytes = 0
        """Total number of bytes."""
        self.head_complete = False
        self.head_size = 0
        """Bytes of the complete head, including the empty line at its end."""
        self.expects_continue = False
        """The client waits for `100 Continue` before it sends the body."""
        self.ready = False
        """The request is complete, or known to be invalid."""
        self._max_body = max_body
        self._head = bytearray()
        self._missing = 0
        self._chunks: _Chunks | None = None

    def add(self, data: bytes) -> None:
        self.buffer.add(data)
        self.received_bytes += len(data)
        if self.head_complete:
            self._add_body(data)
            return
        if not self._head and data[:2] != b"\r\n" and (end := data.find(HEAD_END)) >= 0:
            self.head_size = end + len(HEAD_END)
            self._begin_body(data[: end + 2])  # the usual case: the head arrives at once
            if not self.ready:
                self._add_body(data[end + len(HEAD_END) :])
            return
        begin = max(0, len(self._head) - len(HEAD_END) + 1)
        self._head += data
        # an empty line may precede a request (RFC 9112, section 2.2)
        if self._head.startswith(b"\r\n"):
            begin = max(begin, 2)
        end = self._head.find(HEAD_END, begin)
        if end < 0:
            self.ready = len(self._head) > MAX_HEAD
            return
        body = bytes(self._head[end + len(HEAD_END) :])
        self.head_size = end + len(HEAD_END)
        self._begin_body(bytes(self._head[: end + 2]))
        self._head.clear()
        if not self.ready:
            self._add_body(body)

    def _begin_body(self, head: bytes) -> None:
        self.head_complete = True
        lowered = head.lower()
        lengths = [length.strip(b" \t") for length in _LENGTH.findall(lowered)]
        coded = _ENCODED in lowered
        if coded and not lengths:
            self._chunks = _Chunks()
        elif len(lengths) == 1 and not coded and lengths[0].isdigit() and len(lengths[0]) < 20:
            self._missing = int(lengths[0])
            self.ready = self._missing == 0 or self._missing > self._max_body
        else:
            self.ready = True
        self.expects_continue = not self.ready and _EXPECTS_CONTINUE.search(head) is not None

    def _add_body(self, data: bytes) -> None:
        if self._chunks is None:
            self._missing -= len(data)
            self.ready = self._missing <= 0
        else:
            self.ready = (
                self._chunks.ends_in(data) or self.received_bytes > self._max_body + MAX_HEAD
            )


class _Chunks:
    """Finds the end of a chunked body (RFC 9112, section 7.1)."""

    def __init__(self) -> None:
        self._data_left = 0
        """Missing bytes of the current chunk, including the end of line after it."""
        self._line = bytearray()
        self._in_trailers = False

    def ends_in(self, data: bytes) -> bool:
        """Whether the body ends in these bytes, or is invalid."""
        position = 0
        while position < len(data):
            if self._data_left:
                length = min(self._data_left, len(data) - position)
                self._data_left -= length
                position += length
                continue
            end = data.find(b"\n", position)
            stop = len(data) if end < 0 else end + 1
            self._line += data[position:stop]
            position = stop
            if len(self._line) > MAX_CHUNK_LINE:
                return True
            if end >= 0 and self._ends_body():
                return True
        return False

    def _ends_body(self) -> bool:
        line = bytes(self._line).rstrip(b"\r\n")
        self._line.clear()
        if self._in_trailers:
            return not line
        try:
            size = int(line.partition(b";")[0].strip() or b"-", 16)
        except ValueError:
            return True
        self._in_trailers = size == 0
        self._data_left = size + 2 if size else 0
        return size < 0
