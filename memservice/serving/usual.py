"""Usual requests, parsed with one regular expression and answered with one `send`.

gunicorn spends more on a cheap request than the application does. So a request whose head has the
strict form below is parsed here. gunicorn parses every other one, from the same bytes: it alone
decides what is rejected, and how.
"""

# fast path: see docs/decisions/fast-paths.md#usual-requests

from __future__ import annotations

import io
import os
import re
import time
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_to_bytes

from gunicorn.config import PostRequest, PreRequest
from gunicorn.http.message import HeaderPolicy
from gunicorn.http.parser import RequestParser
from gunicorn.http.wsgi import Response, base_environ
from gunicorn.util import hop_headers, http_date

if TYPE_CHECKING:
    from memservice.serving.incoming import IncomingRequest

Application = Callable[[dict[str, Any], Any], Iterable[bytes]]
"""A WSGI application."""

MAX_HEAD = 8190
"""Maximum bytes of a head; no limit of gunicorn is smaller."""
MAX_FIELDS = 100
MAX_JOINED = 2**16
"""Maximum bytes of a first part of the body that are sent with the head."""

# HTTP/1.1 with a path, without a fragment. Field lines have a name of letters, digits and hyphens
# (gunicorn drops names with an underscore), and no control characters. A line that continues the
# one before it has no name, so it does not match.
_HEAD = re.compile(
    rb"([A-Z]{3,20}+) (/[!\"$-~]*+) HTTP/1\.1\r\n"
    rb"((?:[A-Za-z0-9-]++:[\t -~\x80-\xff]*+\r\n)*+)"
)
_ANSWER_FIELDS = re.compile(r"(?:[A-Za-z0-9-]++: [\t -~\x80-\xff]*+\r\n)*+")
_LENGTH = re.compile(r"[0-9]{1,19}")
_GUNICORNS = frozenset({"HTTP_EXPECT", "HTTP_TRANSFER_ENCODING", "HTTP_UPGRADE"})
"""Fields that change how a request is read."""
_SINGLE = frozenset({"HTTP_HOST", "CONTENT_TYPE", "CONTENT_LENGTH"})


def can_parse_usual(cfg: Any) -> bool:
    """Whether gunicorn, as it is configured, does nothing to usual requests that is not done
    here."""
    observers = (
        cfg.accesslog,
        cfg.logconfig,
        cfg.logconfig_dict,
        cfg.logconfig_json,
        cfg.syslog,
        cfg.statsd_host,
        cfg.pre_request is not PreRequest.default,
        cfg.post_request is not PostRequest.default,
    )
    return bool(
        cfg.keepalive
        and not any(observers)
        and not cfg.max_requests
        and not os.environ.get("SCRIPT_NAME")
        and min(cfg.limit_request_line or MAX_HEAD, cfg.limit_request_field_size) >= MAX_HEAD
        and cfg.limit_request_fields >= MAX_FIELDS
    )


class AnswerFailed(Exception):
    """The application failed after the head of its response was sent."""


class Peer:
    """What all requests of one connection have in common."""

    def __init__(self, cfg: Any, sock: Any, client: Any, server: Any) -> None:
        self.environ: dict[str, Any] = base_environ(cfg) | {
            "wsgi.multithread": True,
            "gunicorn.socket": sock,
            "SERVER_PROTOCOL": "HTTP/1.1",
            "SCRIPT_NAME": "",
            "REMOTE_ADDR": client[0],
            "REMOTE_PORT": str(client[1]),
            "SERVER_NAME": server[0],
            "SERVER_PORT": str(server[1]),
        }
        policy = HeaderPolicy()
        policy.cfg, policy.peer_addr = cfg, client
        secure, _ = policy._peer_trusted_for_forwarded()
        self.secure: dict[str, str] = {_key(name): value for name, value in secure.items()}
        """Fields by which this peer says that a request came by HTTPS, with their value for it."""


class UsualRequest:
    """A complete request. Has the attributes of gunicorn's that its worker and its responses
    use."""

    __slots__ = ("body", "environ", "is_last", "method", "query", "uri")

    version = (1, 1)
    headers = ()

    def __init__(self, environ: dict[str, Any], body: bytes, is_last: bool) -> None:
        self.environ = environ
        self.body = environ["wsgi.input"] = io.BytesIO(body)
        self.is_last = is_last
        self.method, self.uri = environ["REQUEST_METHOD"], environ["RAW_URI"]
        self.query = environ["QUERY_STRING"]

    def should_close(self) -> bool:
        return self.is_last


class Parser(RequestParser):  # type: ignore[misc]  # gunicorn has no types
    """The requests of a connection: usual ones, and gunicorn's for all others."""

    def __init__(self, cfg: Any, sock: Any, client: Any, server: Any) -> None:
        super().__init__(cfg, sock, client)
        self._sock = sock
        self._peer = Peer(cfg, sock, client, server)

    def __next__(self) -> Any:
        request = usual_request(self._sock.incoming, self._peer)
        if request is None:
            return super().__next__()
        self.mesg = request
        return request

    def finish_body(self, *args: Any, **kwargs: Any) -> bool:
        """The body of a usual request has been received."""
        request: object = self.mesg
        return isinstance(request, UsualRequest) or bool(super().finish_body(*args, **kwargs))


def usual_request(incoming: IncomingRequest, peer: Peer) -> UsualRequest | None:
    """Take the request from its buffer; None, without taking anything, if gunicorn has to parse
    it."""
    size = incoming.head_size
    if not 0 < size <= MAX_HEAD:
        return None
    match = _HEAD.fullmatch(incoming.buffer.peek(size)[:-2])
    if match is None:
        return None
    fields = _fields(match[3].decode("latin-1"))
    if fields is None:
        return None
    environ = {**peer.environ, **fields}
    length = int(fields.get("CONTENT_LENGTH", "0"))
    connection = fields.get("HTTP_CONNECTION", "keep-alive").lower()
    scheme = _scheme(fields, peer.secure)
    if (
        size + length > len(incoming.buffer)
        or connection not in ("keep-alive", "close")
        or scheme is None
    ):
        return None
    target = match[2].decode("ascii")
    path, _, environ["QUERY_STRING"] = target.partition("?")
    environ["PATH_INFO"] = unquote_to_bytes(path).decode("latin-1") if "%" in path else path
    environ["REQUEST_METHOD"] = match[1].decode("ascii")
    environ["RAW_URI"], environ["wsgi.url_scheme"] = target, scheme
    incoming.buffer.take(size)
    body = incoming.buffer.take(length) if length else b""
    return UsualRequest(environ, body, connection == "close")


def _fields(text: str) -> dict[str, str] | None:
    """The fields as WSGI names them; None if gunicorn has to read them."""
    lines = text.split("\r\n")
    if len(lines) > MAX_FIELDS:
        return None
    fields: dict[str, str] = {}
    for line in lines[:-1]:
        name, _, value = line.partition(":")
        key, value = _key(name), value.strip(" \t")
        if key not in fields:
            fields[key] = value
        elif key in _SINGLE:
            return None
        else:
            fields[key] += f",{value}"
    if not _GUNICORNS.isdisjoint(fields):
        return None
    return fields if _LENGTH.fullmatch(fields.get("CONTENT_LENGTH", "0")) else None


@lru_cache(256)
def _key(name: str) -> str:
    key = name.upper().replace("-", "_")
    return key if key in ("CONTENT_TYPE", "CONTENT_LENGTH") else f"HTTP_{key}"


def _scheme(fields: dict[str, str], secure: dict[str, str]) -> str | None:
    """None if there are several, on which gunicorn decides."""
    schemes = {
        None if "," in fields[key] else "https" if fields[key] == value else "http"
        for key, value in secure.items()
        if key in fields
    }
    return "http" if not schemes else schemes.pop() if len(schemes) == 1 else None


class UsualResponse(Response):  # type: ignore[misc]  # gunicorn has no types
    """A response to a usual request: gunicorn's, with its head and the first part of its body in
    one `send`."""

    headers_sent: bool

    def process_headers(self, headers: Sequence[tuple[str, str]]) -> None:
        text = "".join([f"{name}: {value}\r\n" for name, value in headers])
        if _ANSWER_FIELDS.fullmatch(text) is None or text.count("\r\n") != len(headers):
            super().process_headers(headers)
            return
        for name, value in headers:
            lowered = name.lower()
            if lowered in hop_headers:
                self.response_length = None
                super().process_headers(headers)
                return
            if lowered == "content-length":
                self.response_length = int(value)
        self.headers = list(headers)

    def default_headers(self) -> list[str]:
        lines = [
            f"HTTP/1.1 {self.status}\r\nServer: {self.version}\r\n",
            f"Date: {_date(int(time.time()))}\r\n",
            "Connection: close\r\n" if self.should_close() else "Connection: keep-alive\r\n",
        ]
        if self.chunked:
            lines.append("Transfer-Encoding: chunked\r\n")
        return lines

    def write(self, data: bytes) -> None:
        length = self.response_length
        if (
            self.headers_sent
            or self._omits_body
            or length is None
            or len(data) > min(length, MAX_JOINED)
            or not isinstance(data, bytes)
        ):
            super().write(data)
            return
        lines = [*self.default_headers(), *[f"{k}: {v}\r\n" for k, v in self.headers], "\r\n"]
        self.headers_sent, self.sent = True, len(data)
        self.sock.sendall("".join(lines).encode("latin-1") + data)


def answer(
    request: UsualRequest, sock: Any, cfg: Any, application: Application, *, is_last: bool
) -> bool:
    """Send the application's response. Returns whether the connection can be kept."""
    response = UsualResponse(request, sock, cfg)
    if is_last:
        response.force_close()
    try:
        parts = application(request.environ, response.start_response)
        try:
            for part in parts:
                response.write(part)
            response.close()
        finally:
            if hasattr(parts, "close"):
                parts.close()
    except OSError:
        raise  # the client has gone, or is too slow
    except (Exception, SystemExit) as error:
        if not response.headers_sent:
            raise
        raise AnswerFailed from error
    return not response.should_close()


@lru_cache(1)
def _date(second: int) -> str:
    return http_date(second)  # type: ignore[no-any-return]
