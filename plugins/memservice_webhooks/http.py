"""Delivery by HTTP POST to public addresses: resolved once, checked, and connected to exactly what
was checked."""

from __future__ import annotations

import ipaddress
import logging
import re
import time
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import SplitResult, urlsplit

import httpcore

from memservice.domain.errors import InvalidInput
from memservice.spi.webhooks import Outcome
from memservice_webhooks.addresses import RESOLVE_SECONDS, Address, Blocked, Guard, Unresolved
from memservice_webhooks.deadline import Bounded, Deadline

log = logging.getLogger("memservice.webhooks")

MAX_ANSWER = 64 * 1024
"""Bytes of an answer that are read; nobody looks at them, but some servers only act on what they
could answer."""
LOC = ("body", "url")
_HOST = re.compile(r"(?=.{1,254}$)(?:[A-Za-z0-9_-]{1,63}\.)*[A-Za-z0-9_-]{1,63}\.?")
_BRACKETED = re.compile(r"\[[0-9A-Fa-f:.]+\](?::[0-9]*)?")
"""An IPv6 address and a port: no zone, which means something on this machine only, and nothing
beside the brackets."""

_FAILURES = (
    httpcore.NetworkError,
    httpcore.TimeoutException,
    httpcore.ProtocolError,
    httpcore.UnsupportedProtocol,
    OSError,
)
"""What an endpoint, or the way to it, can do to us."""


class _GuardedBackend(httpcore.SyncBackend):
    """Connects to an address that was checked, so that a name cannot be given another address
    between check and use.

    What it connects has `seconds` for everything, from the look-up of the name to the last byte of
    the answer.
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
        return Bounded(self._connect(addresses, port, deadline, socket_options), deadline)

    def _connect(
        self,
        addresses: list[Address],
        port: int,
        deadline: Deadline,
        socket_options: Iterable[Any] | None,
    ) -> httpcore.NetworkStream:
        """To the first address that takes the connection; each gets its share of the time that is
        left."""
        last: Exception = httpcore.ConnectError("the host has no address")
        for index, address in enumerate(addresses):
            share = deadline.left(httpcore.ConnectTimeout) / (len(addresses) - index)
            try:
                return super().connect_tcp(str(address), port, share, None, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                last = error
        raise last


class HttpTransport:
    """Never follows a redirect; bounded in time and in what it reads."""

    def __init__(self, allow_networks: tuple[str, ...] = (), timeout_seconds: float = 30.0) -> None:
        """Raises ValueError for a network that is none."""
        self._guard = Guard(allow_networks)
        self._timeout = timeout_seconds
        backend = _GuardedBackend(self._guard, timeout_seconds)
        # Each delivery has a connection of its own: the address is checked each time, and the
        # deadline is the connection's. What is trusted is read once, for all of them.
        self._pool = httpcore.ConnectionPool(
            ssl_context=httpcore.default_ssl_context(),
            network_backend=backend,
            max_connections=None,
            max_keepalive_connections=0,
        )

    def check(self, url: str) -> None:
        """A name is accepted whether it resolves or not, and to whatever: it is looked up, and
        checked, at each delivery."""
        if not self._guard.permits_name(_parts(url).hostname or ""):
            raise InvalidInput.at(
                *LOC, message="The URL's host is at a private or internal address"
            )

    def deliver(self, url: str, body: bytes, headers: Mapping[str, str]) -> Outcome:
        began = time.monotonic()
        status: int | None = None
        error: str | None = None
        try:
            sent = [("Host", _parts(url).netloc), ("User-Agent", "memservice"), *headers.items()]
            with self._pool.stream("POST", url, headers=sent, content=body) as answer:
                status = answer.status
                read = 0
                for chunk in answer.iter_stream():
                    read += len(chunk)
                    if read > MAX_ANSWER:
                        break
        except InvalidInput as failure:
            error = str(failure)
        except (Blocked, Unresolved) as failure:
            # Whether and where a name lies inside the network is for the operator to know: readers
            # of deliveries may have chosen the name.
            log.warning("nothing is delivered there: %s", failure)
            error = f"NoAddress: no public address was found for {failure.host}"
        except _FAILURES as failure:
            # Once there is a status, what becomes of the rest of the answer matters to nobody.
            if status is None:
                error = (
                    f"{type(failure).__name__}: {failure}"
                    if str(failure)
                    else type(failure).__name__
                )
        return Outcome(status, error, int((time.monotonic() - began) * 1000))


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
