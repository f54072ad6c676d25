"""Events in the wire format of CloudEvents 1.0."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from memservice.telemetry.events import Event

SINGLE, BATCH = "application/cloudevents+json", "application/cloudevents-batch+json"
SAMPLE_BUCKETS = 10_000
"""Number of buckets into which sampling keys are hashed."""

Envelope = dict[str, Any]


def envelope(event: Event, at: datetime, namespace: str | None, version: str) -> Envelope:
    """The event with its CloudEvents attributes. `namespace` names the installation in `source`;
    `version` is that of memservice."""
    time = at.isoformat()
    return {
        "specversion": "1.0",
        "id": event_id(event, time),
        "source": "/".join(["/honcho", *([namespace] if namespace else []), event.CATEGORY]),
        "type": event.TYPE,
        "time": time,
        "dataschema": f"https://honcho.dev/schemas/{event.TYPE}/v{event.VERSION}",
        "data": {**event.data(), "timestamp": time, "honcho_version": version},
    }


def event_id(event: Event, time: str) -> str:
    """An id that is the same each time an event is sent."""
    digest = hashlib.sha256(
        f"{event.TYPE}:{event.resource}:{time}:{event.VERSION}".encode("utf-8", "surrogatepass")
    ).digest()
    return "evt_" + base64.urlsafe_b64encode(digest[:16]).rstrip(b"=").decode()


def is_sampled(key: str, rate: float) -> bool:
    """Whether events with this key are in the sample. The result is the same in every process."""
    bucket = (
        int.from_bytes(hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()[:4], "big")
        % SAMPLE_BUCKETS
    )
    return bucket < rate * SAMPLE_BUCKETS


def encode(events: Sequence[Envelope]) -> tuple[bytes, str]:
    """The body of a request and its content type: a single event, or an array of several."""
    payload: Any = events[0] if len(events) == 1 else list(events)
    return json.dumps(payload, separators=(",", ":")).encode(), SINGLE if len(
        events
    ) == 1 else BATCH
