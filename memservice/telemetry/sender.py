"""One request to the collector."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from memservice.telemetry.cloudevents import Envelope, encode

if TYPE_CHECKING:
    import httpx

TIMEOUT_SECONDS = 30.0
RETRYABLE_STATUSES = frozenset({401, 403, 404, 408, 425, 429})
"""Client errors that do not concern the events themselves: the same events may be accepted
later."""


class EventsRejected(Exception):
    """The collector rejects these events permanently. The message is safe to log."""


class DeliveryFailed(Exception):
    """The events could not be delivered; a later try may succeed. The message is safe to log."""


class Sender:
    """Used by one thread. The connection is opened by the first request."""

    def __init__(self, endpoint: str, headers: Mapping[str, str]) -> None:
        self._endpoint = endpoint
        self._headers = dict(headers)
        self._client: httpx.Client | None = None

    def send(self, events: Sequence[Envelope], seconds: float = TIMEOUT_SECONDS) -> None:
        """Raises `EventsRejected` or `DeliveryFailed`."""
        import httpx

        if self._client is None:
            # httpx logs every URL, and a URL can contain a secret.
            logging.getLogger("httpx").setLevel(logging.WARNING)
            self._client = httpx.Client(headers=self._headers)
        body, kind = encode(events)
        try:
            # Only the status of the response is read.
            with self._client.stream(
                "POST",
                self._endpoint,
                content=body,
                headers={"Content-Type": kind},
                timeout=seconds,
            ) as response:
                status = response.status_code
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
            raise DeliveryFailed(
                f"the collector cannot be reached ({type(error).__name__})"
            ) from error
        if 200 <= status < 300:
            return
        if 400 <= status < 500 and status not in RETRYABLE_STATUSES:
            raise EventsRejected(f"the collector answered {status}")
        raise DeliveryFailed(f"the collector answered {status}")

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
