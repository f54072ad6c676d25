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
from memservice.domain.filters import all_of, where
from memservice.domain.filters.ast import Contains
from memservice.domain.ids import new_uid
from memservice.domain.records import DELETING, FAILED, PAUSED, PENDING, Delivery, Task, WebhookEndpoint
from memservice.domain.times import wire_seconds
from memservice.domain.values import strip_nul
from memservice.runtime import Runtime
from memservice.services import workspaces
from memservice.services.auth import policy
from memservice.services.auth.principal import Principal
from memservice.services.paging import Page, Paging, read_page
from memservice.services.tasks import outbox
from memservice.spi.storage import View

QUEUE_EMPTY, TEST = "queue_empty", "test"
"""Kinds of event, as our own API and documents name them."""

WIRE_TYPES: Mapping[str, str] = {QUEUE_EMPTY: "queue.empty", TEST: "test.event"}
"""As `type` says in what is delivered."""

MAX_URL = 2048
IS_PAUSED = "the endpoint is paused"
SECRET_PREFIX = "whsec_"  # noqa: S105  # marks secrets, is none


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened, as plugins are told of it and, under its name on the wire, webhooks."""

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


def register(rt: Runtime, who: Principal, workspace: str, url: str) -> Registered:
    """The workspace's endpoint of that URL, made if there is none. The URL is checked by the transport of its scheme."""
    policy.require(who, workspace)
    address: str = strip_nul(url).strip()
    check_url(rt, address)

    def store(view: View) -> Registered:
        # Held until commit, so that two registrations at once cannot both be the last that the limit allows.
        place = view.workspaces.by_slug(workspace, lock=True)
        if place is None:
            raise workspaces.not_found(workspace)
        found = view.webhooks.by_url(place.key, address)
        if found is not None:
            return Registered(found, False)
        limit = rt.settings.webhook.max_workspace_limit
        if view.webhooks.count(place.key) >= limit:
            raise Conflict(f"Maximum number of webhook endpoints ({limit}) reached for this workspace.")
        endpoint = WebhookEndpoint(
            uid=new_uid(), workspace_key=place.key, url=address, secret=SECRET_PREFIX + _secret(), created_at=rt.clock()
        )
        return Registered(view.webhooks.save(endpoint), True)

    return rt.storage.write(store)


def _secret() -> str:
    return base64.b64encode(secrets.token_bytes(24)).decode()


def check_url(rt: Runtime, url: str) -> None:
    """Raises InvalidInput unless events may be sent there. May resolve a host's name, so it is not for a transaction."""
    loc = ("body", "url")
    if len(url) > MAX_URL:
        raise InvalidInput(Problem(loc, f"String should have at most {MAX_URL} characters", "string_too_long"))
    if "://" not in url and not url.partition(":")[1]:
        raise InvalidInput.at(*loc, message="Invalid URL format")
    try:
        rt.plugins.webhook_transport(url)
    except ConfigurationError as error:
        raise InvalidInput.at(*loc, message="Only HTTP and HTTPS URLs are allowed") from error
    rt.webhook_transport(url).check(url)


def page(rt: Runtime, who: Principal, workspace: str, paging: Paging) -> Page[WebhookEndpoint]:
    policy.require(who, workspace)
    with rt.storage.read() as view:
        place = view.workspaces.by_slug(workspace)
        if place is None:
            return Page([], 0, paging.page, paging.size)
        key = place.key
        return read_page(
            paging,
            lambda: view.webhooks.page(key, paging.order(), paging.size, paging.offset),
            lambda: view.webhooks.count(key),
        )


def _require(view: View, workspace: str, uid: str) -> WebhookEndpoint:
    place = view.workspaces.by_slug(workspace)
    found = None if place is None else view.webhooks.by_uid(place.key, uid)
    if found is None:
        raise _unknown(workspace, uid)
    return found


def _unknown(workspace: str, uid: str) -> NotFound:
    return NotFound(f"Webhook endpoint {uid} not found for workspace {workspace}")


def delete(rt: Runtime, who: Principal, workspace: str, uid: str) -> None:
    """Forget an endpoint, what waits to be delivered to it, and the record of what was."""
    policy.require(who, workspace)

    def remove(view: View) -> None:
        # Held, so that an attempt that ends at this moment is recorded before its endpoint's records go, or not at all.
        endpoint = view.webhooks.by_key(_require(view, workspace, uid).key, lock=True)
        if endpoint is None:
            raise _unknown(workspace, uid)
        view.webhooks.erase(endpoint)
        view.rows.delete(Task, where(unit=outbox.webhook_unit(endpoint), state=(PENDING, FAILED)))

    rt.storage.write(remove)


def send_test(rt: Runtime, who: Principal, workspace: str) -> None:
    """Deliver a test event to every endpoint of the workspace."""
    policy.require(who, workspace)

    def store(view: View) -> Event | None:
        place = view.workspaces.by_slug(workspace)
        return None if place is None else emit(rt, view, place.key, Event(TEST, {"workspace_id": workspace}))

    tell(rt, rt.storage.write(store))


def emit(rt: Runtime, view: View, workspace: int, event: Event) -> Event:
    """Queue an event for every endpoint of a workspace; returns it, to be told once it is committed. What is meant for a paused
    endpoint is kept as failed, so that it can be delivered later."""
    endpoints = view.webhooks.of_workspace(workspace)
    kind, now = WIRE_TYPES[event.kind], rt.clock()
    wire = {"type": kind, "data": dict(event.data), "timestamp": wire_seconds(now)}
    body = json.dumps(wire, sort_keys=True, separators=(",", ":"))
    tasks = []
    for endpoint in endpoints:
        task = outbox.webhook(rt, endpoint, new_uid(), kind, body)
        if endpoint.state == PAUSED:
            task = replace(task, state=FAILED, last_error=IS_PAUSED, finished_at=now)
        tasks.append(task)
    view.tasks.add(tasks)
    return event


def tell(rt: Runtime, event: Event | None) -> None:
    """Tell plugins of an event that was committed."""
    if event is not None:
        rt.plugins.tell(event.kind, lambda: dict(event.data))


def queue_empty(rt: Runtime, view: View, task: Task) -> Event | None:
    """A work unit was worked off: tell the workspace's endpoints. `task` is one of those that were done."""
    if task.workspace_key is None or not (view.webhooks.count(task.workspace_key) or rt.plugins.hears_events):
        return None
    workspace = view.workspaces.by_key(task.workspace_key)
    if workspace is None or workspace.state == DELETING:
        return None
    session = view.sessions.by_key(task.session_key or 0)
    observed = view.peers.by_keys([task.observed_key]).get(task.observed_key) if task.observed_key else None
    data = {
        "workspace_id": workspace.slug,
        "queue_type": task.kind,
        "session_id": session.slug if session else None,
        "observer": None,
        "observed": observed.slug if observed else None,
    }
    return emit(rt, view, workspace.key, Event(QUEUE_EMPTY, data))


def deliveries(rt: Runtime, who: Principal, workspace: str, uid: str, paging: Paging) -> Page[Delivery]:
    """Attempts to deliver to an endpoint, newest first."""
    policy.require(who, workspace)
    with rt.storage.read() as view:
        key = _require(view, workspace, uid).key
        return read_page(
            paging,
            lambda: view.webhooks.deliveries(key, paging.order("created_at", newest_first=True), paging.size, paging.offset),
            lambda: view.webhooks.count_deliveries(key),
        )


def dead_letters(rt: Runtime, who: Principal, workspace: str, uid: str, paging: Paging) -> Page[DeadLetter]:
    """Events that an endpoint never took, oldest first."""
    policy.require(who, workspace)
    with rt.storage.read() as view:
        condition = where(unit=outbox.webhook_unit(_require(view, workspace, uid)), state=FAILED)
        return read_page(
            paging,
            lambda: [_letter(task) for task in view.rows.page(Task, condition, paging.order(), paging.size, paging.offset)],
            lambda: view.rows.count(Task, condition),
        )


def _letter(task: Task) -> DeadLetter:
    event = task.payload
    return DeadLetter(task.uid, str(event["event_uid"]), str(event["event"]), task.attempts, task.last_error, task.created_at)


def redeliver(rt: Runtime, who: Principal, workspace: str, uid: str) -> Task:
    """Deliver an event again: that of an attempt, or a dead letter, by its id. Works for a paused endpoint; success ends the pause.

    What still waits for its next try is tried at once; what rests gets all its tries again. Only what was delivered is queued anew.
    """
    policy.require(who, workspace)

    def store(view: View) -> Task:
        place = view.workspaces.by_slug(workspace)
        event = None if place is None else _event(view, place.key, uid)
        endpoint = None if event is None else view.webhooks.by_key(int(event["endpoint"]))
        if event is None or endpoint is None:
            raise NotFound(f"Delivery {uid} not found in workspace {workspace}")
        waiting = _waiting(view, endpoint, event, uid)
        if waiting is None:
            return view.tasks.add([outbox.webhook(rt, endpoint, str(event["event_uid"]), str(event["event"]), str(event["body"]))])[0]
        # Only what has to change is written: it may be in hand at this moment.
        if not view.tasks.hurry(waiting):
            view.tasks.retry([waiting.key])
        return waiting

    return rt.storage.write(store)


def _event(view: View, workspace: int, uid: str) -> Mapping[str, Any] | None:
    """What was to be delivered, and where, as tasks say it: by an attempt, or by what was or is a dead letter."""
    attempt = view.webhooks.delivery(workspace, uid)
    if attempt is not None:
        return {"endpoint": attempt.endpoint_key, "event_uid": attempt.event_uid, "event": attempt.event, "body": attempt.body}
    letter = view.tasks.by_uid(uid)
    return letter.payload if letter is not None and letter.kind == outbox.WEBHOOK and letter.workspace_key == workspace else None


def _waiting(view: View, endpoint: WebhookEndpoint, event: Mapping[str, Any], uid: str) -> Task | None:
    """The task that is to deliver an event, or has given up; None if it was delivered."""
    letter = view.tasks.by_uid(uid)
    if letter is not None and letter.state in (PENDING, FAILED):
        return letter
    undelivered = where(unit=outbox.webhook_unit(endpoint), state=(PENDING, FAILED))
    found = view.rows.page(Task, all_of(undelivered, Contains("payload", {"event_uid": event["event_uid"]})), limit=1)
    return found[0] if found else None
