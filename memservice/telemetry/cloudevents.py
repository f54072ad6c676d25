"""Events as CloudEvents 1.0 puts them on the wire."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from memservice.telemetry.events import Event

SINGLE, BATCH = "application/cloudevents+json", "application/cloudevents-batch+json"
SHARES = 10_000
"""Into how many parts the keys of sampled events are divided."""

Envelope = dict[str, Any]


def envelope(event: Event, at: datetime, namespace: str | None, version: str) -> Envelope:
    """`namespace` names the installation in `source`; `version` is the product's."""
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
    """The same for the same event, however often it is sent."""
    digest = hashlib.sha256(
        f"{event.TYPE}:{event.resource}:{time}:{event.VERSION}".encode("utf-8", "surrogatepass")
    ).digest()
    return "evt_" + base64.urlsafe_b64encode(digest[:16]).rstrip(b"=").decode()


def is_sampled(key: str, rate: float) -> bool:
    """Whether events of this key belong to the share that is sent: the same answer in every
    process."""
    part = (
        int.from_bytes(hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()[:4], "big")
        % SHARES
    )
    return part < rate * SHARES


def encode(events: Sequence[Envelope]) -> tuple[bytes, str]:
    """The body of a request, and its content type: one event alone, several as an array."""
    shape: Any = events[0] if len(events) == 1 else list(events)
    return json.dumps(shape, separators=(",", ":")).encode(), SINGLE if len(events) == 1 else BATCH
