"""One request to the collector."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from memservice.telemetry.cloudevents import Envelope, encode

if TYPE_CHECKING:
    import httpx

TIMEOUT_SECONDS = 30.0
LATER = frozenset({401, 403, 404, 408, 425, 429})
"""Refusals that say nothing about the events themselves: the same may be taken later."""


class Refused(Exception):
    """The collector will not take these events, ever. Its text is safe to log."""


class NotTaken(Exception):
    """The collector did not take the events; it may later. Its text is safe to log."""


class Sender:
    """Used by one thread. The connection is opened by the first request."""

    def __init__(self, endpoint: str, headers: Mapping[str, str]) -> None:
        self._endpoint = endpoint
        self._headers = dict(headers)
        self._client: httpx.Client | None = None

    def send(self, events: Sequence[Envelope], seconds: float = TIMEOUT_SECONDS) -> None:
        """Raises `Refused` or `NotTaken`."""
        import httpx

        if self._client is None:
            self._client = httpx.Client(headers=self._headers)
        body, kind = encode(events)
        try:
            # Of the answer only the status counts: the rest of it is not waited for.
            with self._client.stream(
                "POST",
                self._endpoint,
                content=body,
                headers={"Content-Type": kind},
                timeout=seconds,
            ) as answer:
                status = answer.status_code
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
            raise NotTaken(f"the collector cannot be reached ({type(error).__name__})") from error
        if 200 <= status < 300:
            return
        if 400 <= status < 500 and status not in LATER:
            raise Refused(f"the collector answered {status}")
        raise NotTaken(f"the collector answered {status}")

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
