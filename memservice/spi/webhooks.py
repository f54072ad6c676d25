"""The webhook-transport seam: hand one event to one endpoint."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Protocol

sender: ContextVar[int] = ContextVar("sender", default=0)
"""During `deliver`, the key of the workspace whose event it is, by which a transport shares out
what is scarce; 0 where there is none."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of an attempt. Exactly one of `status` (the endpoint's answer) and `error` is
    set."""

    status: int | None = None
    error: str | None = None
    duration_ms: int = 0

    @property
    def delivered(self) -> bool:
        return self.status is not None and 200 <= self.status < 300


class WebhookTransport(Protocol):
    """Safe to call from several threads. Bounded in time and size; never follows redirects."""

    def check(self, url: str) -> None:
        """Raise `InvalidInput` if this URL may not be registered."""
        ...

    def deliver(self, url: str, body: bytes, headers: Mapping[str, str]) -> Outcome: ...


@dataclass(frozen=True, slots=True)
class TransportFixture:
    """A transport, and the endpoints that a test may use: for the testing kit."""

    transport: WebhookTransport
    url: str
    """An endpoint that takes everything."""
    received: Callable[[], Sequence[tuple[Mapping[str, str], bytes]]]
    """What has arrived there, in order of arrival: headers and body."""
    failing: Sequence[str]
    """Endpoints that may be registered, and take nothing: gone, or refusing."""
    refused: Sequence[str]
    """URLs of the transport's own schemes that must not be registered."""
    stuck: str | None = None
    """An endpoint that never answers, if there can be such a thing …"""
    patience_seconds: float = 5.0
    """… and how long, at most, the transport was told to wait for it."""
