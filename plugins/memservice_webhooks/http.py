"""Delivery by HTTP POST to public addresses. A name is resolved once, and the connection goes to
the checked address."""

from __future__ import annotations

import ipaddress
import logging
import os
import re
import ssl
import time
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from functools import cache
from http import HTTPStatus
from typing import Any
from urllib.parse import SplitResult, urlsplit

import httpcore

from memservice.domain.errors import InvalidInput
from memservice.spi.webhooks import FetchFailed, Outcome
from memservice_webhooks.addresses import (
    RESOLVE_SECONDS,
    Address,
    BlockedAddress,
    Guard,
    UnresolvedHost,
)
from memservice_webhooks.deadline import Deadline, DeadlineStream

log = logging.getLogger("memservice.webhooks")

MAX_RESPONSE_BYTES = 64 * 1024
"""Maximum bytes of a response that are read. They are ignored, but some servers process a request
only if they can send their response."""
LOC = ("url",)
_HOST = re.compile(r"(?=.{1,254}$)(?:[A-Za-z0-9_-]{1,63}\.)*[A-Za-z0-9_-]{1,63}\.?")
_BRACKETED = re.compile(r"\[[0-9A-Fa-f:.]+\](?::[0-9]*)?")
"""An IPv6 address and a port, without a zone (which has a meaning on this machine only) and without
other text around the brackets."""

_FAILURES = (
    httpcore.NetworkError,
    httpcore.TimeoutException,
    httpcore.ProtocolError,
    httpcore.UnsupportedProtocol,
    OSError,
)
"""Errors that an endpoint or the network can cause."""
_CAUSES = (InvalidInput, BlockedAddress, UnresolvedHost, *_FAILURES)
"""Why a request has no response."""


class _GuardedBackend(httpcore.SyncBackend):
    """Connects to the address that was checked, so that a name cannot resolve to another address
    between the check and the connection.

    A connection has `seconds` for everything, from the look-up of the name to the last byte of the
    response.
    """

    def __init__(self, guard: Guard, seconds: float) -> None:
        super().__init__()
        self._guard = guard
        self._seconds = seconds

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        deadline = Deadline(self._seconds)
        addresses = self._guard.resolve(host, port, min(RESOLVE_SECONDS, self._seconds))
        return DeadlineStream(self._connect(addresses, port, deadline, socket_options), deadline)

    def _connect(
        self,
        addresses: list[Address],
        port: int,
        deadline: Deadline,
        socket_options: Iterable[Any] | None,
    ) -> httpcore.NetworkStream:
        """Connect to the first address that accepts. The remaining time is divided among the
        addresses."""
        last_error: Exception = httpcore.ConnectError("the host has no address")
        for index, address in enumerate(addresses):
            share = deadline.remaining(httpcore.ConnectTimeout) / (len(addresses) - index)
            try:
                return super().connect_tcp(str(address), port, share, None, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                last_error = error
        raise last_error


@cache
def _trusted_certificates(file: str | None, folder: str | None) -> ssl.SSLContext:
    """Read once for the process. OpenSSL reads the variables itself; they are the cache's key."""
    return httpcore.default_ssl_context()


class HttpTransport:
    """Never follows a redirect. Time and response size are bounded."""

    def __init__(self, allow_networks: tuple[str, ...] = (), timeout_seconds: float = 30.0) -> None:
        """Raises ValueError for an invalid network."""
        self._guard = Guard(allow_networks)
        self._timeout = timeout_seconds
        backend = _GuardedBackend(self._guard, timeout_seconds)
        # One connection per delivery: the address is checked each time, and the deadline belongs to
        # the connection.
        self._pool = httpcore.ConnectionPool(
            ssl_context=_trusted_certificates(
                os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")
            ),
            network_backend=backend,
            max_connections=None,
            max_keepalive_connections=0,
        )

    def check(self, url: str) -> None:
        """Check the URL's syntax and a literal address. A name is not looked up here, but at each
        delivery."""
        if not self._guard.permits_name(_parts(url).hostname or ""):
            raise InvalidInput.at(
                *LOC, message="The URL's host is at a private or internal address"
            )

    def deliver(self, url: str, body: bytes, headers: Mapping[str, str]) -> Outcome:
        started_at = time.monotonic()
        status: int | None = None
        error: str | None = None
        try:
            with self._response("POST", url, headers, body) as response:
                status = response.status
                size = 0
                for chunk in response.iter_stream():
                    size += len(chunk)
                    if size > MAX_RESPONSE_BYTES:
                        break
        except _CAUSES as failure:
            # Errors after the status do not matter: the rest of the response is ignored.
            if status is None:
                error = _message(failure)
        return Outcome(status, error, int((time.monotonic() - started_at) * 1000))

    def fetch(self, url: str, max_bytes: int) -> bytes:
        self.check(url)
        try:
            with self._response("GET", url, {"Accept-Encoding": "identity"}) as response:
                if response.status != HTTPStatus.OK:
                    raise FetchFailed(f"the response has the status {response.status}, not 200")
                document = bytearray()
                for chunk in response.iter_stream():
                    document += chunk
                    if len(document) > max_bytes:
                        raise FetchFailed(f"the response has more than {max_bytes} bytes")
                return bytes(document)
        except _CAUSES as failure:
            raise FetchFailed(_message(failure)) from failure

    def _response(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None = None
    ) -> AbstractContextManager[httpcore.Response]:
        all_headers = [
            ("Host", _parts(url).netloc),
            ("User-Agent", "memservice"),
            *headers.items(),
        ]
        return self._pool.stream(method, url, headers=all_headers, content=body)


def _message(failure: Exception) -> str:
    if isinstance(failure, BlockedAddress | UnresolvedHost):
        # Only the log says why: readers of the delivery may have chosen the name, and must not
        # learn whether and where it is inside the network.
        log.warning("request blocked: %s", failure)
        return f"NoAddress: no public address was found for {failure.host}"
    if isinstance(failure, InvalidInput):
        return str(failure)
    name = type(failure).__name__
    return f"{name}: {failure}" if str(failure) else name


def _parts(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        port = parts.port
        host = parts.hostname or ""
        if "[" in parts.netloc:
            ipaddress.IPv6Address(host)
    except ValueError as error:
        raise InvalidInput.at(*LOC, message="Invalid URL format") from error
    bracketed = _BRACKETED.fullmatch(parts.netloc)
    if parts.scheme.lower() not in ("http", "https"):
        raise InvalidInput.at(*LOC, message="Only HTTP and HTTPS URLs are allowed")
    if parts.username is not None or parts.password is not None:
        raise InvalidInput.at(*LOC, message="The URL must not carry a user name or a password")
    if (
        port == 0
        or not url.isascii()
        or not url.isprintable()
        or " " in url
        or not (_HOST.fullmatch(host) or bracketed)
    ):
        raise InvalidInput.at(*LOC, message="Invalid URL format")
    return parts
