"""A request that the server parses itself reads as gunicorn reads it; it leaves every other one to
gunicorn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from gunicorn.config import Config
from gunicorn.http.errors import (
    InvalidResponseHeader,
    InvalidResponseHeaderName,
    ParseException,
)
from gunicorn.http.parser import RequestParser
from gunicorn.http.wsgi import create
from hypothesis import example, given
from hypothesis import strategies as st

from memservice.serving import gunicorn_config
from memservice.serving.incoming import IncomingRequest
from memservice.serving.usual import (
    MAX_FIELDS,
    MAX_HEAD,
    MAX_JOINED,
    Peer,
    UsualRequest,
    UsualResponse,
    can_parse_usual,
    usual_request,
)

SERVER, NEAR, FAR = ("127.0.0.1", 8000), ("127.0.0.1", 4242), ("192.0.2.7", 4242)
"""`NEAR` is trusted as a proxy by gunicorn's default."""
USUAL = {
    "no fields": b"GET / HTTP/1.1\r\n\r\n",
    "a field": b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "an empty field": b"GET /health HTTP/1.1\r\nX-Empty:\r\n\r\n",
    "blanks around a value": b"GET / HTTP/1.1\r\nX-A: \t b \t\r\n\r\n",
    "an escaped path and a query": b"GET /a%20b%2Fc?x=1&y=%C3%A9?z HTTP/1.1\r\n\r\n",
    "two slashes": b"GET //evil/a HTTP/1.1\r\n\r\n",
    "a colon in the path": b"GET /a:b HTTP/1.1\r\n\r\n",
    "a body": b"POST /x HTTP/1.1\r\nContent-Length: 5\r\nContent-Type: text/plain\r\n\r\nhello",
    "the next request": b"POST /x HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}GET / HTTP/1.1\r\n\r\n",
    "a repeated field": b"GET / HTTP/1.1\r\nX-A: 1\r\nx-a: 2\r\nX-A: 3\r\n\r\n",
    "the last one": b"GET / HTTP/1.1\r\nConnection: Close\r\n\r\n",
    "one to be followed": b"GET / HTTP/1.1\r\nConnection: keep-alive\r\n\r\n",
    "by HTTPS": b"GET / HTTP/1.1\r\nX-Forwarded-Proto: https\r\n\r\n",
    "by HTTP": b"GET / HTTP/1.1\r\nX-Forwarded-Proto: http\r\n\r\n",
    "bytes above ASCII": b"GET / HTTP/1.1\r\nX-A: \xc3\xa9\xff\r\n\r\n",
}
GUNICORNS = {
    "an empty line first": b"\r\nGET / HTTP/1.1\r\n\r\n",
    "HTTP/1.0": b"GET / HTTP/1.0\r\n\r\n",
    "a whole URL": b"GET http://localhost/ HTTP/1.1\r\n\r\n",
    "a fragment": b"GET /a#b HTTP/1.1\r\n\r\n",
    "an asterisk": b"OPTIONS * HTTP/1.1\r\n\r\n",
    "a byte above ASCII in the path": b"GET /\xe9 HTTP/1.1\r\n\r\n",
    "two blanks": b"GET  / HTTP/1.1\r\n\r\n",
    "a method in lower case": b"get / HTTP/1.1\r\n\r\n",
    "a line that is continued": b"GET / HTTP/1.1\r\nX-A: b\r\n c\r\n\r\n",
    "a blank before the colon": b"GET / HTTP/1.1\r\nHost : localhost\r\n\r\n",
    "a bare line feed": b"GET / HTTP/1.1\r\nX-A: b\nContent-Length: 5\r\n\r\nhello",
    "a bare carriage return": b"GET / HTTP/1.1\r\nX-A: b\rc\r\n\r\n",
    "a NUL": b"GET / HTTP/1.1\r\nX-A: b\0c\r\n\r\n",
    "an underscore": b"GET / HTTP/1.1\r\nX_A: b\r\n\r\n",
    "no name": b"GET / HTTP/1.1\r\n: b\r\n\r\n",
    "two hosts": b"GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
    "two types": b"GET / HTTP/1.1\r\nContent-Type: a/b\r\ncontent-type: a/b\r\n\r\n",
    "two lengths": b"GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx",
    "a length with a sign": b"GET / HTTP/1.1\r\nContent-Length: +1\r\n\r\nx",
    "a length in other digits": b"GET / HTTP/1.1\r\nContent-Length: \xb2\r\n\r\nxx",
    "a list of lengths": b"GET / HTTP/1.1\r\nContent-Length: 1, 1\r\n\r\nx",
    "chunks": b"GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
    "chunks and a length": (
        b"GET / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    ),
    "an expectation": b"GET / HTTP/1.1\r\nExpect: 100-continue\r\n\r\n",
    "another protocol": b"GET / HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n",
    "schemes that differ": (
        b"GET / HTTP/1.1\r\nX-Forwarded-Proto: http\r\nX-Forwarded-Ssl: on\r\n\r\n"
    ),
    "a scheme twice": (
        b"GET / HTTP/1.1\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Proto: https\r\n\r\n"
    ),
    "a missing part of the body": b"POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhell",
    "many fields": b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * (MAX_FIELDS + 1) + b"\r\n",
    "a long head": b"GET /" + b"a" * MAX_HEAD + b" HTTP/1.1\r\n\r\n",
}


def config() -> Config:
    cfg = Config()
    for name in ("forwarder_headers", "limit_request_line", "limit_request_field_size"):
        cfg.set(name, getattr(gunicorn_config, name))
    return cfg


CFG = config()
OWN = {"wsgi.input", "wsgi.errors", "wsgi.early_hints", "wsgi.multithread", "gunicorn.socket"}
"""Parts of an environment that are not compared: objects, and what gunicorn's worker sets."""


@dataclass(frozen=True)
class Reading:
    environ: dict[str, Any]
    body: bytes
    is_last: bool
    rest: bytes


def received(data: bytes) -> IncomingRequest:
    incoming = IncomingRequest(2**20)
    incoming.add(data)
    incoming.buffer.rewind()
    return incoming


def ours(data: bytes, client: tuple[str, int]) -> Reading | None:
    incoming = received(data)
    request = usual_request(incoming, Peer(CFG, None, client, SERVER))
    if request is None:
        assert incoming.buffer.take(len(data) + 1) == data, "gunicorn gets all bytes"
        return None
    environ = {key: value for key, value in request.environ.items() if key not in OWN}
    rest = incoming.buffer.take(len(data))
    return Reading(environ, request.body.read(), request.should_close(), rest)


def gunicorns(data: bytes, client: tuple[str, int]) -> Reading | None:
    """None if gunicorn rejects the request."""
    parser = RequestParser(CFG, iter([data]), client)
    try:
        request = next(parser)
        _, environ = create(request, None, client, SERVER, CFG)
        body = request.body.read()
    except (ParseException, StopIteration):
        return None
    compared = {key: value for key, value in environ.items() if key not in OWN}
    return Reading(compared, body, request.should_close(), parser.unreader.buf.getvalue())


@pytest.mark.parametrize("client", [NEAR, FAR], ids=["a proxy", "a client"])
@pytest.mark.parametrize("data", USUAL.values(), ids=USUAL.keys())
def test_a_usual_request_reads_as_gunicorn_reads_it(data: bytes, client: tuple[str, int]) -> None:
    reading = ours(data, client)
    assert reading is not None
    assert reading == gunicorns(data, client)


@pytest.mark.parametrize("data", GUNICORNS.values(), ids=GUNICORNS.keys())
def test_any_other_request_is_left_to_gunicorn(data: bytes) -> None:
    assert ours(data, NEAR) is None


_NAMES = st.sampled_from(
    "Host host Content-Length Content-Type Connection Transfer-Encoding Expect X-A x-a X_A "
    "X-Forwarded-Proto X-Forwarded-Ssl Upgrade Cookie".split()
)
_VALUES = st.sampled_from(
    ["", "1", "01", "5", "+5", "close", "keep-alive", "chunked", "a, b", "https", "on", "\t x "]
) | st.text(st.characters(max_codepoint=255), max_size=6)
_LINES = st.lists(st.tuples(_NAMES, st.sampled_from([":", ": ", " :"]), _VALUES), max_size=6)
_TARGETS = st.sampled_from(["/", "//a/b", "/a?b", "/a#b", "*", "a:1", "/%41%zz?%41"]) | st.text(
    st.characters(max_codepoint=255), max_size=8
).map("/{}".format)
_ENDS = st.sampled_from(["\r\n"] * 9 + ["\n"])


@st.composite
def requests(draw: st.DrawFn) -> bytes:
    method = draw(st.sampled_from(["GET", "POST", "HEAD", "get", "G"]))
    version = draw(st.sampled_from(["HTTP/1.1"] * 5 + ["HTTP/1.0", "HTTP/2.0"]))
    head = f"{method} {draw(_TARGETS)} {version}{draw(_ENDS)}"
    for name, colon, value in draw(_LINES):
        head += f"{name}{colon}{value}{draw(_ENDS)}"
    return f"{head}\r\n".encode("latin-1") + draw(st.binary(max_size=8))


@given(requests(), st.sampled_from([NEAR, FAR]))
@example(b"GET / HTTP/1.1\r\nConnection: close\r\nConnection: keep-alive\r\n\r\n", NEAR)
def test_no_request_is_read_otherwise_than_by_gunicorn(
    data: bytes, client: tuple[str, int]
) -> None:
    reading = ours(data, client)
    assert reading is None or reading == gunicorns(data, client)


def test_the_servers_configuration_allows_it() -> None:
    assert can_parse_usual(CFG)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("accesslog", "-"),
        ("statsd_host", "127.0.0.1:8125"),
        ("post_request", lambda worker, request, environ, response: None),
        ("pre_request", lambda worker, request: None),
        ("max_requests", 100),
        ("keepalive", 0),
        ("limit_request_line", 100),
        ("limit_request_fields", 10),
    ],
)
def test_an_option_that_concerns_all_requests_leaves_them_to_gunicorn(
    name: str, value: object
) -> None:
    cfg = config()
    cfg.set(name, value)
    assert not can_parse_usual(cfg)


class Sink:
    """A connection that keeps each `sendall`."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []

    def sendall(self, data: bytes) -> None:
        self.sent.append(bytes(data))


def response(method: bytes = b"GET") -> tuple[UsualResponse, Sink]:
    request = usual_request(
        received(method + b" / HTTP/1.1\r\n\r\n"), Peer(CFG, None, NEAR, SERVER)
    )
    assert isinstance(request, UsualRequest)
    sink = Sink()
    return UsualResponse(request, sink, CFG), sink


JSON = [("Content-Type", "application/json"), ("Content-Length", "2")]


def test_a_short_answer_is_sent_at_once() -> None:
    answer, sink = response()
    answer.start_response("200 OK", JSON)
    answer.write(b"{}")
    answer.close()
    (sent,) = sink.sent
    head, _, body = sent.partition(b"\r\n\r\n")
    assert body == b"{}"
    assert head.startswith(b"HTTP/1.1 200 OK\r\nServer: gunicorn\r\nDate: ")
    assert head.endswith(
        b"Connection: keep-alive\r\nContent-Type: application/json\r\nContent-Length: 2"
    )


@pytest.mark.parametrize("method", [b"HEAD", b"GET"])
def test_the_body_is_as_long_as_announced(method: bytes) -> None:
    """And a response to HEAD has none."""
    answer, sink = response(method)
    answer.start_response("200 OK", JSON)
    answer.write(b"{}{}")
    answer.close()
    assert b"".join(sink.sent).partition(b"\r\n\r\n")[2] == (b"" if method == b"HEAD" else b"{}")


def test_a_long_answer_is_not_copied() -> None:
    answer, sink = response()
    answer.start_response("200 OK", [("Content-Length", str(MAX_JOINED + 1))])
    answer.write(b"x" * (MAX_JOINED + 1))
    assert sink.sent[1] == b"x" * (MAX_JOINED + 1)


def test_an_answer_of_unknown_length_has_chunks() -> None:
    answer, sink = response()
    answer.start_response("200 OK", [("Content-Type", "text/plain")])
    for part in (b"ab", b"", b"c"):
        answer.write(part)
    answer.close()
    head, _, body = b"".join(sink.sent).partition(b"\r\n\r\n")
    assert b"Transfer-Encoding: chunked" in head
    assert body == b"2\r\nab\r\n1\r\nc\r\n0\r\n\r\n"


@pytest.mark.parametrize(
    "header", [("X-A", "b\r\nX-B: c"), ("X-A\r\nX-B", "c"), ("X A", "b"), ("", "b"), ("X-A", "b\0")]
)
def test_a_header_cannot_add_another_one(header: tuple[str, str]) -> None:
    answer, sink = response()
    with pytest.raises((InvalidResponseHeader, InvalidResponseHeaderName)):
        answer.start_response("200 OK", [*JSON, header])
    assert sink.sent == []


def test_headers_of_the_connection_are_the_servers() -> None:
    answer, sink = response()
    answer.start_response("200 OK", [*JSON, ("Connection", "close"), ("Server", "other")])
    answer.write(b"{}")
    head = sink.sent[0].partition(b"\r\n\r\n")[0]
    assert head.count(b"Connection: ") == head.count(b"Server: ") == 1
    assert b"Connection: keep-alive" in head
