"""When a request is whole, however its bytes come."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memservice.serving.incoming import MAX_HEAD, MAX_IN_MEMORY, IncomingRequest, RequestBuffer

HEAD = b"POST /x HTTP/1.1\r\nHost: localhost\r\n"
WHOLE = {
    "no body": b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "an empty line first": b"\r\nGET /health HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a length": HEAD + b"content-LENGTH:  5 \r\n\r\nhello",
    "a length of nothing": HEAD + b"Content-Length: 0\r\n\r\n",
    "the end of a head in the body": HEAD + b"Content-Length: 8\r\n\r\n\r\n\r\n\r\n\r\n",
    "chunks": HEAD
    + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA;x=1\r\n0\r\n\r\n0\r\n\r\n\r\n0\r\n\r\n",
    "trailers": HEAD
    + b"Transfer-Encoding: gzip, chunked\r\n\r\n1\r\nx\r\n0\r\nA: b\r\nC: d\r\n\r\n",
}


@pytest.mark.parametrize("whole", WHOLE.values(), ids=WHOLE.keys())
@given(st.data())
@settings(deadline=None)
def test_a_request_is_ready_with_its_last_byte(whole: bytes, data: st.DataObject) -> None:
    """And what follows it is kept for the next one."""
    arriving, at = IncomingRequest(1000), 0
    after = data.draw(st.binary(max_size=20))
    while at < len(whole):
        assert not arriving.ready
        step = data.draw(st.integers(1, len(whole) - at))
        last = at + step == len(whole)
        arriving.add(whole[at : at + step] + (after if last else b""))
        at += step
    assert arriving.ready
    arriving.buffer.rewind()
    assert arriving.buffer.take(10_000) == whole + after


@pytest.mark.parametrize(
    "fields",
    [
        b"Content-Length: 5\r\nContent-Length: 50",
        b"Content-Length: 5\r\nTransfer-Encoding: chunked",
        b"Content-Length: -5",
        b"Content-Length: 5, 5",
        b"Content-Length: +5",
        b"Content-Length: " + b"9" * 30,
        b"Content-Length: 1001",
        b"Content-Length:",
        b"Transfer-Encoding: chunked\r\n\r\nzz",
        b"Transfer-Encoding: chunked\r\n\r\n-1",
        b"Transfer-Encoding: chunked\r\n\r\n",
    ],
)
def test_an_invalid_request_is_passed_on_at_once(fields: bytes) -> None:
    """Before anything more is waited for: gunicorn, or the application, refuses it."""
    arriving = IncomingRequest(1000)
    arriving.add(HEAD + fields + b"\r\n\r\n")
    assert arriving.ready


def test_an_endless_request_is_passed_on() -> None:
    endless, chunks, line = (IncomingRequest(1000) for _ in range(3))
    endless.add(b"GET /" + b"x" * (MAX_HEAD + 1))
    chunks.add(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
    line.add(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
    assert not chunks.ready
    chunks.add(b"100000\r\n" + b"x" * 2**20 + b"\r\n")
    chunks.add(b"100000\r\n" + b"x" * 2**20 + b"\r\n")
    line.add(b"1;" + b"x" * 100_000)
    for arriving in (endless, chunks, line):
        assert arriving.ready
        arriving.buffer.close()


def test_a_head_of_blanks_is_read_in_linear_time() -> None:
    arriving = IncomingRequest(1000)
    arriving.add(
        HEAD
        + b"Content-Length: x"
        + b" " * 900_000
        + b"y\r\nExpect:"
        + b" " * 100_000
        + b"x\r\n\r\n"
    )
    assert arriving.ready
    arriving.buffer.close()


@pytest.mark.parametrize(
    ("field", "expects"),
    [(b"Expect: 100-Continue\r\n", True), (b"", False), (b"X-Expect: 100-continue\r\n", False)],
)
def test_expect_100_continue_is_recognised(field: bytes, expects: bool) -> None:
    arriving = IncomingRequest(1000)
    arriving.add(HEAD + field + b"Content-Length: 5\r\n\r\n")
    assert arriving.expects_continue is expects


@given(st.lists(st.integers(0, MAX_IN_MEMORY), max_size=4), st.integers(5_000, 100_000))
@settings(deadline=None, max_examples=30)
def test_bytes_stay_in_order_in_memory_and_on_disk(sizes: list[int], step: int) -> None:
    buffer, whole = RequestBuffer(), b""
    for number, size in enumerate(sizes):
        data = bytes([number + 1]) * size
        buffer.add(data)
        whole += data
    assert len(buffer) == len(whole)
    buffer.rewind()
    taken = b"".join(iter(lambda: buffer.take(step), b""))
    assert taken == whole
    assert not buffer


def test_on_a_full_disk_nothing_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "absent"))
    buffer, whole = RequestBuffer(), b"a" * MAX_IN_MEMORY + b"b" * 10
    for at in range(0, len(whole), 50_000):
        buffer.add(whole[at : at + 50_000])
    assert buffer.full
    buffer.rewind()
    assert buffer.take(len(whole)) == whole
