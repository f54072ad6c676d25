"""Counters for events. `Meter` itself counts nothing; `Metrics` is a subclass that does."""

from __future__ import annotations

BUFFER_FULL, SEND_FAILED = "buffer_full", "send_failed"
TRACE = "trace_"
"""Prefix of reasons for trace events."""


class Meter:
    def emitted(self, kind: str) -> None:
        """An event was queued for the collector."""

    def sampled_out(self, kind: str) -> None:
        """An event is not in the sample."""

    def dropped(self, reason: str, number: int) -> None:
        """Events were dropped."""

    def waiting(self, number: int) -> None:
        """The number of pending events."""
