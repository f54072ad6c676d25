"""Delivers events to endpoints: signed, with retries, and with a record of each attempt."""

from __future__ import annotations

import base64
import hashlib
import hmac
import logging
import random
from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from memservice.domain.failures import redacted_traceback
from memservice.domain.filters import equals
from memservice.domain.ids import new_uid
from memservice.domain.records import (
    ACTIVE,
    DELETING,
    FAILED,
    PAUSED,
    PENDING,
    Delivery,
    Task,
    WebhookEndpoint,
)
from memservice.domain.values import storable
from memservice.pipeline.handler import Failed, Handler, Outcome, Prepared, nothing
from memservice.runtime import Runtime
from memservice.services.tasks import kinds, outbox
from memservice.services.webhooks import IS_PAUSED, SECRET_PREFIX
from memservice.spi.storage import Transaction
from memservice.spi.webhooks import Outcome as Answer
from memservice.spi.webhooks import sender

log = logging.getLogger("memservice.webhooks")

GROWTH = 3
"""Factor between one pause and the next."""
MAX_PAUSE_SECONDS = 4 * 3600.0
MAX_ERROR = 2_000
"""Characters of an error that are stored."""


class Webhook(Handler):
    """Handler of `webhook` tasks: each delivers one event to one endpoint."""

    kind = kinds.WEBHOOK

    def prepare(self, rt: Runtime, tasks: Sequence[Task]) -> Prepared:
        task = tasks[0]
        with rt.storage.read() as tx:
            endpoint = tx.webhooks.by_key(int(task.payload["endpoint"]))
            workspace = None if endpoint is None else tx.workspaces.by_key(endpoint.workspace_key)
        if endpoint is None or workspace is None or workspace.state == DELETING:
            return nothing(skipped="the endpoint no longer exists")
        body = str(task.payload["body"]).encode()
        headers = signed_headers(rt, endpoint, str(task.payload["event_uid"]), body)
        answer = _deliver(rt, endpoint, body, headers)
        attempt = _record(rt, task, endpoint, answer)
        if not answer.delivered:
            raise NotDelivered(rt, endpoint, attempt)

        def store(tx: Transaction) -> Outcome:
            present = tx.webhooks.by_key(endpoint.key, lock=True)
            if present is None:
                return {"skipped": "the endpoint no longer exists"}
            tx.webhooks.record(attempt)
            if present.failures or present.state != ACTIVE:
                tx.webhooks.save(replace(present, failures=0, state=ACTIVE))
            return {"delivered": 1}

        return Prepared(store)

    def retry_after(self, rt: Runtime, attempts: int, error: Exception) -> float | None:
        settings = rt.settings.webhook
        if attempts >= settings.max_attempts:
            return None
        pause: float = min(
            settings.first_pause_seconds * GROWTH ** (attempts - 1), MAX_PAUSE_SECONDS
        )
        return pause * random.uniform(0.8, 1.2)


def _deliver(
    rt: Runtime, endpoint: WebhookEndpoint, body: bytes, headers: Mapping[str, str]
) -> Answer:
    before = sender.set(endpoint.workspace_key)
    try:
        return rt.webhook_transport(endpoint.url).deliver(endpoint.url, body, headers)
    except (
        Exception
    ) as error:  # a transport may fail in any way or be uninstalled: a failed attempt
        log.error(
            "the transport of an endpoint failed: %s\n%s",
            type(error).__name__,
            redacted_traceback(error),
        )
        return Answer(error=f"{type(error).__name__}: {error}")
    finally:
        sender.reset(before)


class NotDelivered(Struct, Failed):
    """An endpoint did not accept an event. The attempt is recorded with the failure."""

    rt: Runtime
    endpoint: WebhookEndpoint
    attempt: Delivery

    def __str__(self) -> str:
        return self.attempt.error or f"the endpoint answered {self.attempt.status}"

    @property
    def public_reason(self) -> str:  # type: ignore[override]  # computed from the attempt
        """The status, or the class of the error: its text may quote the endpoint's answer."""
        attempt = self.attempt
        if attempt.status is not None:
            return f"the endpoint {self.endpoint.uid} answered {attempt.status}"
        error_class = (attempt.error or "").partition(":")[0]
        return f"the endpoint {self.endpoint.uid} was not reached ({error_class})"

    def record(self, tx: Transaction, is_final: bool) -> None:
        present = tx.webhooks.by_key(self.endpoint.key, lock=True)
        if present is None:
            return
        tx.webhooks.record(self.attempt)
        if not is_final:
            return
        failures = present.failures + 1
        paused = failures >= self.rt.settings.webhook.pause_after
        tx.webhooks.save(
            replace(present, failures=failures, state=PAUSED if paused else present.state)
        )
        if paused:
            _fail_pending(self.rt, tx, present)


def _fail_pending(rt: Runtime, tx: Transaction, endpoint: WebhookEndpoint) -> None:
    """The endpoint is paused: fail its pending deliveries, so that they wait for a manual retry."""
    pending = equals(unit=outbox.webhook_unit(endpoint), state=PENDING)
    tx.rows.change(Task, pending, state=FAILED, last_error=IS_PAUSED, finished_at=rt.clock())
    log.warning(
        "endpoint %s is paused: it failed too often. Deliver an event to it again to end the pause",
        endpoint.uid,
    )


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
        # The error may quote the endpoint's answer, of any length.
        error=None if answer.error is None else storable(answer.error, MAX_ERROR),
        duration_ms=answer.duration_ms,
        created_at=rt.clock(),
    )


def signed_headers(
    rt: Runtime, endpoint: WebhookEndpoint, event_uid: str, body: bytes
) -> dict[str, str]:
    """The three Standard Webhooks headers, signed with the endpoint's secret, and the older
    signature if a global secret is set."""
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
        headers["X-Honcho-Signature"] = hmac.new(
            rt.settings.webhook.secret.encode(), body, hashlib.sha256
        ).hexdigest()
    return headers
