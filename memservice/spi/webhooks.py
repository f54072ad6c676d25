"""The webhook-transport seam: hand one event to one endpoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of an attempt. Exactly one of `status` (the endpoint's answer) and `error` is set."""

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
