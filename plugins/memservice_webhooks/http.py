"""Delivery by HTTP POST to public addresses: resolved once, checked, and connected to exactly what was checked."""

from __future__ import annotations

import ipaddress
import time
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import SplitResult, urlsplit

import httpcore

from memservice.domain.errors import InvalidInput
from memservice.spi.webhooks import Outcome
from memservice_webhooks.addresses import Blocked, Guard, Unresolved

MAX_ANSWER = 64 * 1024
"""Bytes of an answer that are read; nobody looks at them, but a connection can only be used again once they are."""
LOC = ("body", "url")


class _GuardedBackend(httpcore.SyncBackend):
    """Connects to an address that was checked, so that a name cannot be given another address between check and use."""

    def __init__(self, guard: Guard) -> None:
        super().__init__()
        self._guard = guard

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        addresses = self._guard.resolve(host, port)
        return super().connect_tcp(str(addresses[0]), port, timeout, local_address, socket_options)


class HttpTransport:
    """Never follows a redirect; bounded in time and in what it reads."""

    def __init__(self, allow_networks: tuple[str, ...] = (), timeout_seconds: float = 30.0) -> None:
        self._guard = Guard(allow_networks)
        self._timeout = timeout_seconds
        self._pool = httpcore.ConnectionPool(network_backend=_GuardedBackend(self._guard), max_keepalive_connections=0)

    def check(self, url: str) -> None:
        """A host name that does not resolve now is accepted: it is checked again at each delivery."""
        parts = _parts(url)
        host = parts.hostname or ""
        try:
            address = ipaddress.ip_address(host)
        except ValueError:
            try:
                self._guard.resolve(host, _port(parts))
            except Blocked as error:
                raise _refused() from error
            except Unresolved:
                return
        else:
            if not self._guard.permits(address):
                raise _refused()

    def deliver(self, url: str, body: bytes, headers: Mapping[str, str]) -> Outcome:
        began = time.monotonic()
        deadline = began + self._timeout
        limits = dict.fromkeys(("connect", "read", "write", "pool"), self._timeout)
        status: int | None = None
        error: str | None = None
        try:
            with self._pool.stream("POST", url, headers=list(headers.items()), content=body, extensions={"timeout": limits}) as answer:
                status = answer.status
                read = 0
                for chunk in answer.iter_stream():
                    read += len(chunk)
                    if read > MAX_ANSWER or time.monotonic() > deadline:
                        break
        except Exception as failure:  # whatever the network does is the endpoint's failure, not ours
            if status is None:
                error = f"{type(failure).__name__}: {failure}" if str(failure) else type(failure).__name__
        return Outcome(status, error, int((time.monotonic() - began) * 1000))


def _parts(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise InvalidInput.at(*LOC, message="Invalid URL format") from error
    if parts.scheme.lower() not in ("http", "https"):
        raise InvalidInput.at(*LOC, message="Only HTTP and HTTPS URLs are allowed")
    if not parts.hostname or port == 0 or any(character.isspace() or ord(character) < 32 for character in url) or not url.isascii():
        raise InvalidInput.at(*LOC, message="Invalid URL format")
    if parts.username is not None or parts.password is not None:
        raise InvalidInput.at(*LOC, message="The URL must not carry a user name or a password")
    return parts


def _port(parts: SplitResult) -> int:
    return parts.port or (443 if parts.scheme.lower() == "https" else 80)


def _refused() -> InvalidInput:
    return InvalidInput.at(*LOC, message="The URL's host is at a private or internal address")
