"""Webhooks: endpoints that are told of events, and the record of every attempt to tell them.

Delivering is background work: one unit per endpoint, so that one that hangs holds up nobody else.
"""

from __future__ import annotations

import base64
import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

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
"""Kinds of event, as our own API and documents name them."""

WIRE_TYPES: Mapping[str, str] = {
    QUEUE_EMPTY: "queue.empty",
    TEST: "test.event",
    MODEL_UNAVAILABLE: "model.unavailable",
    MODEL_RECOVERED: "model.recovered",
}
"""As `type` says in what is delivered."""

MAX_URL = 2048
IS_PAUSED = "the endpoint is paused"
SECRET_PREFIX = "whsec_"  # noqa: S105  # marks secrets, is none


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened, as plugins are told of it and, under its name on the wire,
    webhooks."""

    kind: str
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Registered:
    endpoint: WebhookEndpoint
    created: bool

    @property
    def secret(self) -> str | None:
        """Shown when the endpoint is created, never again."""
        return self.endpoint.secret if self.created else None


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """An event that an endpoint never took."""

    uid: str
    event_uid: str
    event: str
    attempts: int
    error: str | None
    created_at: datetime


def register(rt: Runtime, principal: Principal, workspace_id: str, url: str) -> Registered:
    """The workspace's endpoint of that URL, made if there is none. The URL is checked by the
    transport of its scheme."""
    policy.require(principal, workspace_id, needs=Permission.MANAGE_WEBHOOKS)
    address: str = strip_nul(url).strip()
    check_url(rt, address)

    def store(tx: Transaction) -> Registered:
        # Held until commit, so that two registrations at once cannot both be the last that the
        # limit allows.
        workspace = tx.workspaces.by_slug(workspace_id, lock=True)
        if workspace is None:
            raise workspaces.not_found(workspace_id)
        found = tx.webhooks.by_url(workspace.key, address)
        if found is not None:
            return Registered(found, False)
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
    """Raises InvalidInput unless events may be sent there. May resolve a host's name, so it is not
    for a transaction."""
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
    """Forget an endpoint, what waits to be delivered to it, and the record of what was."""
    policy.require(principal, workspace_id, needs=Permission.MANAGE_WEBHOOKS)

    def remove(tx: Transaction) -> None:
        # Held, so that an attempt that ends at this moment is recorded before its endpoint's
        # records go, or not at all.
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

    tell(rt, rt.storage.write(store))


def emit(rt: Runtime, tx: Transaction, workspace_key: int, event: Event) -> Event:
    """Queue an event for every endpoint of a workspace; returns it, to be told once it is
    committed. What is meant for a paused endpoint is kept as failed, so that it can be delivered
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
    """As `emit`, for every workspace that has endpoints."""
    endpoints = tx.rows.page(WebhookEndpoint)
    for workspace_key in sorted({endpoint.workspace_key for endpoint in endpoints}):
        emit(rt, tx, workspace_key, event)
    return event


def tell(rt: Runtime, event: Event | None) -> None:
    """Tell plugins of an event that was committed."""
    if event is not None:
        rt.plugins.emit(event.kind, lambda: dict(event.data))


def queue_empty(rt: Runtime, tx: Transaction, task: Task) -> Event | None:
    """A work unit was worked off: tell the workspace's endpoints. `task` is one of those that were
    done."""
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
    """An endpoint, and the attempts to deliver to it, continuing after one of them."""
    policy.require(principal, workspace_id, needs=Permission.MANAGE_WEBHOOKS)
    with rt.storage.read() as tx:
        endpoint = _require(tx, workspace_id, uid)
        return endpoint, page_after(tx, Delivery, equals(endpoint_key=endpoint.key), after)


def set_paused(
    rt: Runtime, principal: Principal, workspace_id: str, uid: str, paused: bool
) -> WebhookEndpoint:
    """Pause an endpoint: its events rest as dead letters from now on. Or end its pause."""
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
    """Events that an endpoint never took, oldest first."""
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

    What still waits for its next try is tried at once; what rests gets all its tries again. Only
    what was delivered is queued anew.
    """
    policy.require(principal, workspace_id, needs=Permission.MANAGE_WEBHOOKS)

    def store(tx: Transaction) -> Task:
        workspace = tx.workspaces.by_slug(workspace_id)
        event = None if workspace is None else _event(tx, workspace.key, uid)
        endpoint = None if event is None else tx.webhooks.by_key(int(event["endpoint"]))
        if event is None or endpoint is None:
            raise NotFound(f"Delivery {uid} not found in workspace {workspace_id}")
        waiting = _waiting(tx, endpoint, event, uid)
        if waiting is None:
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
        # Only what has to change is written: it may be in hand at this moment.
        if not tx.tasks.make_due(waiting):
            tx.tasks.retry([waiting.key])
        return waiting

    return rt.storage.write(store)


def _event(tx: Transaction, workspace_key: int, uid: str) -> Mapping[str, Any] | None:
    """What was to be delivered, and where, as tasks say it: by an attempt, or by what was or is a
    dead letter."""
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


def _waiting(
    tx: Transaction, endpoint: WebhookEndpoint, event: Mapping[str, Any], uid: str
) -> Task | None:
    """The task that is to deliver an event, or has given up; None if it was delivered."""
    letter = tx.tasks.by_uid(uid)
    if letter is not None and letter.state in (PENDING, FAILED):
        return letter
    undelivered = equals(unit=outbox.webhook_unit(endpoint), state=(PENDING, FAILED))
    tasks = tx.rows.page(
        Task, all_of(undelivered, Contains("payload", {"event_uid": event["event_uid"]})), limit=1
    )
    return tasks[0] if tasks else None
