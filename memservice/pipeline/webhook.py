"""Telling endpoints of events: signed, tried again, every attempt recorded."""

from __future__ import annotations

import base64
import hashlib
import hmac
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from memservice.domain.ids import new_uid
from memservice.domain.records import ACTIVE, PAUSED, Delivery, Task, WebhookEndpoint
from memservice.pipeline.handler import Failed, Outcome, Prepared, nothing
from memservice.runtime import Runtime
from memservice.services.webhooks import SECRET_PREFIX
from memservice.spi.storage import View
from memservice.spi.webhooks import Outcome as Answer

GROWTH = 3
"""Factor between two pauses."""
LONGEST_PAUSE_SECONDS = 4 * 3600.0


class Webhook:
    """Handler of `webhook` tasks: one event to one endpoint."""

    def batch(self, rt: Runtime, pending: Sequence[Task]) -> int:
        return 1

    def prepare(self, rt: Runtime, tasks: Sequence[Task]) -> Prepared:
        task = tasks[0]
        with rt.storage.read() as view:
            endpoint = view.webhooks.by_key(int(task.payload["endpoint"]))
        if endpoint is None:
            return nothing(skipped="the endpoint is gone")
        body = str(task.payload["body"]).encode()
        headers = signed_headers(rt, endpoint, str(task.payload["event_uid"]), body)
        answer = rt.webhook_transport(endpoint.url).deliver(endpoint.url, body, headers)
        attempt = _record(rt, task, endpoint, answer)
        if not answer.delivered:
            raise NotDelivered(rt, endpoint, attempt)

        def store(view: View) -> Outcome:
            view.webhooks.record(attempt)
            present = view.webhooks.by_key(endpoint.key, lock=True)
            if present is not None and (present.failures or present.state != ACTIVE):
                view.webhooks.save(replace(present, failures=0, state=ACTIVE))
            return {"delivered": 1}

        return Prepared(store)

    def retry_after(self, rt: Runtime, attempts: int) -> float | None:
        settings = rt.settings.webhook
        if attempts >= settings.max_attempts:
            return None
        pause: float = min(settings.first_pause_seconds * GROWTH ** (attempts - 1), LONGEST_PAUSE_SECONDS)
        return pause * random.uniform(0.8, 1.2)


@dataclass
class NotDelivered(Failed):
    """An endpoint did not take an event. The attempt is recorded with the failure."""

    rt: Runtime
    endpoint: WebhookEndpoint
    attempt: Delivery

    def __str__(self) -> str:
        return self.attempt.error or f"the endpoint answered {self.attempt.status}"

    def record(self, view: View, rests: bool) -> None:
        view.webhooks.record(self.attempt)
        present = view.webhooks.by_key(self.endpoint.key, lock=True) if rests else None
        if present is not None:
            failures = present.failures + 1
            paused = failures >= self.rt.settings.webhook.pause_after
            view.webhooks.save(replace(present, failures=failures, state=PAUSED if paused else present.state))


def _record(rt: Runtime, task: Task, endpoint: WebhookEndpoint, answer: Answer) -> Delivery:
    return Delivery(
        uid=new_uid(),
        workspace_key=endpoint.workspace_key,
        endpoint_key=endpoint.key,
        event_uid=str(task.payload["event_uid"]),
        event=str(task.payload["event"]),
        body=str(task.payload["body"]),
        attempt=task.attempts + 1,
        status=answer.status,
        error=answer.error,
        duration_ms=answer.duration_ms,
        created_at=rt.clock(),
    )


def signed_headers(rt: Runtime, endpoint: WebhookEndpoint, event_uid: str, body: bytes) -> dict[str, str]:
    """The three Standard Webhooks headers, by the endpoint's own secret, and the older signature where a global secret is set."""
    timestamp = str(int(rt.clock().timestamp()))
    key = base64.b64decode(endpoint.secret.removeprefix(SECRET_PREFIX))
    content = b".".join((event_uid.encode(), timestamp.encode(), body))
    signature = base64.b64encode(hmac.new(key, content, hashlib.sha256).digest()).decode()
    headers = {
        "Content-Type": "application/json",
        "webhook-id": event_uid,
        "webhook-timestamp": timestamp,
        "webhook-signature": f"v1,{signature}",
    }
    if rt.settings.webhook.secret:
        headers["X-Honcho-Signature"] = hmac.new(rt.settings.webhook.secret.encode(), body, hashlib.sha256).hexdigest()
    return headers
