"""The webhook-transport seam: delivers one event to one endpoint."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import Protocol, runtime_checkable

from msgspec import Struct

sender: ContextVar[int] = ContextVar("sender", default=0)
"""During `deliver`, the key of the event's workspace, so that a transport can share scarce
resources fairly; 0 if there is none."""


class Outcome(Struct, frozen=True):
    """The result of an attempt. Exactly one of `status` (the endpoint's answer) and `error` is
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
        """Raise `InvalidInput.at("url", message="…")` if this URL may not be registered. Delivers
        nothing."""
        ...

    def deliver(self, url: str, body: bytes, headers: Mapping[str, str]) -> Outcome:
        """Deliver one event once: `body` to the byte, because it is signed, and all `headers`.

        Never raises: a failure is an `Outcome`, also for a URL that `check` refuses, because
        settings may have changed since the endpoint was registered. Several threads may deliver to
        one endpoint at once. It does not retry: memservice does.
        """
        ...


@runtime_checkable
class Fetching(Protocol):
    """A transport that also reads documents. The rules of deliveries apply: the same addresses are
    permitted, redirects are not followed, and time is bounded."""

    def fetch(self, url: str, max_bytes: int) -> bytes:
        """The body at this URL. Raises `FetchFailed` for any other status than 200 and for a body
        that is larger, and `InvalidInput` for a URL that may not be called."""
        ...


class FetchFailed(Exception):
    """The document could not be read. The message is for the operator."""


class TransportFixture(Struct, frozen=True):
    """A transport, and the endpoints that a test may use: for the testing kit."""

    transport: WebhookTransport
    url: str
    """An endpoint that accepts everything."""
    received: Callable[[], Sequence[tuple[Mapping[str, str], bytes]]]
    """Headers and body of each event that arrived there, in order of arrival."""
    failing: Sequence[str]
    """Endpoints that may be registered and accept nothing: they do not exist, or refuse."""
    refused: Sequence[str]
    """URLs of the transport's own schemes that must not be registered."""
    stuck: str | None = None
    """An endpoint that never answers, if that is possible."""
    patience_seconds: float = 5.0
    """The transport's time limit for `stuck`."""
