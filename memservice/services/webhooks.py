"""Webhooks: endpoints that receive events, and the log of all delivery attempts.

Deliveries are background tasks with one unit per endpoint, so that a slow endpoint does not delay
others.
"""

from __future__ import annotations

import base64
import json
import secrets
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from memservice.domain.errors import ConfigurationError, Conflict, InvalidInput, NotFound, Problem
from memservice.domain.filters import all_of, equals
from memservice.domain.filters.ast import Contains
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
from memservice.domain.times import wire_seconds
from memservice.domain.values import strip_nul
from memservice.runtime import Runtime
from memservice.services import workspaces
from memservice.services.auth import policy
from memservice.services.auth.permissions import Permission
from memservice.services.auth.principal import Principal
from memservice.services.paging import Listing, Page, Paging, listing, page_after, read_page
from memservice.services.tasks import kinds, outbox
from memservice.spi.storage import Transaction

QUEUE_EMPTY, TEST = "queue_empty", "test"
MODEL_UNAVAILABLE, MODEL_RECOVERED = "model_unavailable", "model_recovered"
ERASURE_DONE = "erasure_done"
"""Kinds of event by their names in this API and its documentation."""

WIRE_TYPES: Mapping[str, str] = {
    QUEUE_EMPTY: "queue.empty",
    TEST: "test.event",
    MODEL_UNAVAILABLE: "model.unavailable",
    MODEL_RECOVERED: "model.recovered",
    ERASURE_DONE: "erasure.done",
}
"""Kind → `type` in the delivered event."""

MAX_URL = 2048
IS_PAUSED = "the endpoint is paused"
SECRET_PREFIX = "whsec_"  # noqa: S105  # a prefix, not a secret


class Event(Struct, frozen=True):
    """An event, for plugins and, under its wire type, for webhooks."""

    kind: str
    data: Mapping[str, Any]


class Registered(Struct, frozen=True):
    endpoint: WebhookEndpoint
    created: bool

    @property
    def secret(self) -> str | None:
        """Shown when the endpoint is created, never again."""
        return self.endpoint.secret if self.created else None


class DeadLetter(Struct, frozen=True):
    """An event that an endpoint never accepted."""

    uid: str
    event_uid: str
    event: str
    attempts: int
    error: str | None
    created_at: datetime


def register(rt: Runtime, principal: Principal, workspace_id: str, url: str) -> Registered:
    """The workspace's endpoint with that URL, created if there is none. The transport of its scheme
    validates the URL."""
    policy.require(principal, workspace_id, needs=Permission.MANAGE_WEBHOOKS)
    address: str = strip_nul(url).strip()
    check_url(rt, address)

    def store(tx: Transaction) -> Registered:
        # Lock it until commit, so that two simultaneous registrations cannot exceed the limit.
        workspace = tx.workspaces.by_slug(workspace_id, lock=True)
        if workspace is None:
            raise workspaces.not_found(workspace_id)
        endpoint = tx.webhooks.by_url(workspace.key, address)
        if endpoint is not None:
            return Registered(endpoint, False)
        limit = rt.settings.webhook.max_workspace_limit
        if tx.webhooks.count(workspace.key) >= limit:
            raise Conflict(
                f"Maximum number of webhook endpoints ({limit}) reached for this workspace."
            )
        endpoint = WebhookEndpoint(
            uid=new_uid(),
            workspace_key=workspace.key,
            url=address,
            secret=SECRET_PREFIX + _secret(),
            created_at=rt.clock(),
        )
        return Registered(tx.webhooks.save(endpoint), True)

    return rt.storage.write(store)


def _secret() -> str:
    return base64.b64encode(secrets.token_bytes(24)).decode()


def check_url(rt: Runtime, url: str) -> None:
    """Raises InvalidInput unless events may be sent to the URL. May resolve a host name, so do not
    call it inside a transaction."""
    argument = ("url",)
    if len(url) > MAX_URL:
        raise InvalidInput(
            Problem(argument, f"String should have at most {MAX_URL} characters", "string_too_long")
        )
    if "://" not in url and not url.partition(":")[1]:
        raise InvalidInput.at(*argument, message="Invalid URL format")
    try:
        rt.plugins.webhook_transport(url)
    except ConfigurationError as error:
        raise InvalidInput.at(*argument, message="Only HTTP and HTTPS URLs are allowed") from error
    rt.webhook_transport(url).check(url)


def page(
    rt: Runtime, principal: Principal, workspace_id: str, paging: Paging
) -> Page[WebhookEndpoint]:
    policy.require(principal, workspace_id, needs=Permission.MANAGE_WEBHOOKS)
    with rt.storage.read() as tx:
        workspace = tx.workspaces.by_slug(workspace_id)
        key = None if workspace is None else workspace.key
        return listing(tx.webhooks, paging, key)


def _require(tx: Transaction, workspace_id: str, uid: str) -> WebhookEndpoint:
    workspace = tx.workspaces.by_slug(workspace_id)
    endpoint = None if workspace is None else tx.webhooks.by_uid(workspace.key, uid)
    if endpoint is None:
        raise _unknown(workspace_id, uid)
    return endpoint


def _unknown(workspace_id: str, uid: str) -> NotFound:
    return NotFound(f"Webhook endpoint {uid} not found for workspace {workspace_id}")


def delete(rt: Runtime, principal: Principal, workspace_id: str, uid: str) -> None:
    """Delete an endpoint, its pending deliveries, and its log."""
    policy.require(principal, workspace_id, needs=Permission.MANAGE_WEBHOOKS)

    def remove(tx: Transaction) -> None:
        # Lock it, so that an attempt that ends now is logged before the endpoint's log is deleted,
        # or not at all.
        endpoint = tx.webhooks.by_key(_require(tx, workspace_id, uid).key, lock=True)
        if endpoint is None:
            raise _unknown(workspace_id, uid)
        tx.webhooks.erase(endpoint)
        tx.rows.delete(Task, equals(unit=outbox.webhook_unit(endpoint), state=(PENDING, FAILED)))

    rt.storage.write(remove)


def send_test(rt: Runtime, principal: Principal, workspace_id: str) -> None:
    """Deliver a test event to every endpoint of the workspace."""
    policy.require(principal, workspace_id, needs=Permission.MANAGE_WEBHOOKS)

    def store(tx: Transaction) -> Event | None:
        workspace = tx.workspaces.by_slug(workspace_id)
        return (
            None
            if workspace is None
            else emit(rt, tx, workspace.key, Event(TEST, {"workspace_id": workspace_id}))
        )

    notify_plugins(rt, rt.storage.write(store))


def emit(rt: Runtime, tx: Transaction, workspace_key: int, event: Event) -> Event:
    """Queue an event for every endpoint of a workspace; returns it, for `notify_plugins` after the
    commit. An event for a paused endpoint is stored as failed, so that it can be delivered
    later."""
    endpoints = tx.webhooks.of_workspace(workspace_key)
    kind, now = WIRE_TYPES[event.kind], rt.clock()
    wire = {"type": kind, "data": dict(event.data), "timestamp": wire_seconds(now)}
    body = json.dumps(wire, sort_keys=True, separators=(",", ":"))
    tasks = []
    for endpoint in endpoints:
        task = outbox.webhook(rt, endpoint, new_uid(), kind, body)
        if endpoint.state == PAUSED:
            task = replace(task, state=FAILED, last_error=IS_PAUSED, finished_at=now)
        tasks.append(task)
    tx.tasks.add(tasks)
    return event


def emit_everywhere(rt: Runtime, tx: Transaction, event: Event) -> Event:
    """Like `emit`, for every workspace that has endpoints."""
    endpoints = tx.rows.page(WebhookEndpoint)
    for workspace_key in sorted({endpoint.workspace_key for endpoint in endpoints}):
        emit(rt, tx, workspace_key, event)
    return event


def notify_plugins(rt: Runtime, event: Event | None) -> None:
    """Pass a committed event to plugins."""
    if event is not None:
        rt.plugins.emit(event.kind, lambda: dict(event.data))


def queue_empty(rt: Runtime, tx: Transaction, task: Task) -> Event | None:
    """Queue the event that a work unit is finished, for the workspace's endpoints. `task` is one of
    its tasks."""
    if task.workspace_key is None or not (
        tx.webhooks.count(task.workspace_key) or rt.plugins.hears_events
    ):
        return None
    workspace = tx.workspaces.by_key(task.workspace_key)
    if workspace is None or workspace.state == DELETING:
        return None
    session = tx.sessions.by_key(task.session_key or 0)
    observed = (
        tx.peers.by_keys([task.observed_key]).get(task.observed_key) if task.observed_key else None
    )
    data = {
        "workspace_id": workspace.slug,
        "queue_type": task.kind,
        "session_id": session.slug if session else None,
        "observer": None,
        "observed": observed.slug if observed else None,
    }
    return emit(rt, tx, workspace.key, Event(QUEUE_EMPTY, data))


def deliveries(
    rt: Runtime, principal: Principal, workspace_id: str, uid: str, paging: Paging
) -> Page[Delivery]:
    """Attempts to deliver to an endpoint, newest first."""
    policy.require(principal, workspace_id, needs=Permission.MANAGE_WEBHOOKS)
    with rt.storage.read() as tx:
        key = _require(tx, workspace_id, uid).key
        return read_page(
            paging,
            lambda: tx.webhooks.deliveries(
                key, paging.order("created_at", newest_first=True), paging.size, paging.offset
            ),
            lambda: tx.webhooks.count_deliveries(key),
        )


def attempts(
    rt: Runtime, principal: Principal, workspace_id: str, uid: str, after: str | None = None
) -> tuple[WebhookEndpoint, Listing[Delivery]]:
    """An endpoint, and its delivery attempts after the attempt `after`."""
    policy.require(principal, workspace_id, needs=Permission.MANAGE_WEBHOOKS)
    with rt.storage.read() as tx:
        endpoint = _require(tx, workspace_id, uid)
        return endpoint, page_after(tx, Delivery, equals(endpoint_key=endpoint.key), after)


def set_paused(
    rt: Runtime, principal: Principal, workspace_id: str, uid: str, paused: bool
) -> WebhookEndpoint:
    """Pause an endpoint, so that its events become dead letters, or end its pause."""
    policy.require(principal, workspace_id, needs=Permission.MANAGE_WEBHOOKS)

    def change(tx: Transaction) -> WebhookEndpoint:
        endpoint = tx.webhooks.by_key(_require(tx, workspace_id, uid).key, lock=True)
        if endpoint is None:
            raise _unknown(workspace_id, uid)
        state = PAUSED if paused else ACTIVE
        return tx.webhooks.save(replace(endpoint, state=state, failures=0))

    return rt.storage.write(change)


def dead_letters(
    rt: Runtime, principal: Principal, workspace_id: str, uid: str, paging: Paging
) -> Page[DeadLetter]:
    """Events that an endpoint never accepted, oldest first."""
    policy.require(principal, workspace_id, needs=Permission.MANAGE_WEBHOOKS)
    with rt.storage.read() as tx:
        condition = equals(unit=outbox.webhook_unit(_require(tx, workspace_id, uid)), state=FAILED)
        return read_page(
            paging,
            lambda: [
                _letter(task)
                for task in tx.rows.page(
                    Task, condition, paging.order(), paging.size, paging.offset
                )
            ],
            lambda: tx.rows.count(Task, condition),
        )


def _letter(task: Task) -> DeadLetter:
    event = task.payload
    return DeadLetter(
        task.uid,
        str(event["event_uid"]),
        str(event["event"]),
        task.attempts,
        task.last_error,
        task.created_at,
    )


def redeliver(rt: Runtime, principal: Principal, workspace_id: str, uid: str) -> Task:
    """Deliver an event again: that of an attempt, or a dead letter, by its id. Works for a paused
    endpoint; success ends the pause.

    A pending delivery becomes due; a dead letter gets all its tries again. Only a delivered event
    is queued again.
    """
    policy.require(principal, workspace_id, needs=Permission.MANAGE_WEBHOOKS)

    def store(tx: Transaction) -> Task:
        workspace = tx.workspaces.by_slug(workspace_id)
        event = None if workspace is None else _event(tx, workspace.key, uid)
        endpoint = None if event is None else tx.webhooks.by_key(int(event["endpoint"]))
        if event is None or endpoint is None:
            raise NotFound(f"Delivery {uid} not found in workspace {workspace_id}")
        undelivered = _undelivered_task(tx, endpoint, event, uid)
        if undelivered is None:
            return tx.tasks.add(
                [
                    outbox.webhook(
                        rt,
                        endpoint,
                        str(event["event_uid"]),
                        str(event["event"]),
                        str(event["body"]),
                    )
                ]
            )[0]
        # Write only the necessary columns: a worker may have the task now.
        if not tx.tasks.make_due(undelivered):
            tx.tasks.retry([undelivered.key])
        return undelivered

    return rt.storage.write(store)


def _event(tx: Transaction, workspace_key: int, uid: str) -> Mapping[str, Any] | None:
    """The event and its endpoint in the form of a task's payload: of an attempt, or of a present or
    former dead letter."""
    attempt = tx.webhooks.delivery(workspace_key, uid)
    if attempt is not None:
        return {
            "endpoint": attempt.endpoint_key,
            "event_uid": attempt.event_uid,
            "event": attempt.event,
            "body": attempt.body,
        }
    letter = tx.tasks.by_uid(uid)
    return (
        letter.payload
        if letter is not None
        and letter.kind == kinds.WEBHOOK
        and letter.workspace_key == workspace_key
        else None
    )


def _undelivered_task(
    tx: Transaction, endpoint: WebhookEndpoint, event: Mapping[str, Any], uid: str
) -> Task | None:
    """The pending or failed task of an event; None if it was delivered."""
    letter = tx.tasks.by_uid(uid)
    if letter is not None and letter.state in (PENDING, FAILED):
        return letter
    undelivered = equals(unit=outbox.webhook_unit(endpoint), state=(PENDING, FAILED))
    tasks = tx.rows.page(
        Task, all_of(undelivered, Contains("payload", {"event_uid": event["event_uid"]})), limit=1
    )
    return tasks[0] if tasks else None
