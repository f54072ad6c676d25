"""Counting what becomes of events. `Meter` itself counts nothing; metrics give one that does."""

from __future__ import annotations

BUFFER_FULL, SEND_FAILED = "buffer_full", "send_failed"
TRACE = "trace_"
"""Before a reason that concerns trace events."""


class Meter:
    def emitted(self, kind: str) -> None:
        """An event is on its way to the collector."""

    def sampled_out(self, kind: str) -> None:
        """An event does not belong to the share that is sent."""

    def dropped(self, reason: str, number: int) -> None:
        """Events were lost."""

    def waiting(self, number: int) -> None:
        """So many wait to be sent."""
