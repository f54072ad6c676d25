"""Server-sent events, as far as models use them: the `data` of each event."""

from __future__ import annotations

from collections.abc import Iterable, Iterator


def data_of(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The data of each event, as soon as the event is whole. Lines end with LF or CRLF, wherever
    the chunks are cut.

    Lines are told apart in bytes: text methods would also break them at U+2028 and U+0085, which
    JSON may hold as they are. What stands behind the last event at the end of the stream is given
    as one more.
    """
    rest = b""
    data: list[bytes] = []
    for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n") if b"\n" in chunk else [rest + chunk]
        for line in lines:
            line = line.removesuffix(b"\r")
            if not line and data:
                yield b"\n".join(data)
                data = []
            _take(line, data)
    _take(rest.removesuffix(b"\r"), data)
    if data:
        yield b"\n".join(data)


def _take(line: bytes, data: list[bytes]) -> None:
    """Comments, names and ids of events say nothing that the data does not."""
    name, colon, value = line.partition(b":")
    if colon and name == b"data":
        data.append(value.removeprefix(b" "))
