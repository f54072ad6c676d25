"""The tasks that a write causes. They are stored in the transaction of the write.

A work unit's key consists of row keys, so it is short, safe anywhere, and survives renames.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from msgspec.structs import replace

from memservice.domain.configuration import Resolved, resolve
from memservice.domain.ids import new_uid
from memservice.domain.records import (
    IMMEDIATELY,
    LONG,
    NEVER,
    SHORT,
    Collection,
    Member,
    Message,
    Peer,
    Session,
    Task,
    WebhookEndpoint,
    Workspace,
)
from memservice.runtime import Runtime
from memservice.services.tasks.kinds import (
    CARD,
    DELETE_VECTORS,
    DREAM,
    DREAM_TIMER,
    EMBED,
    ERASE,
    INDEX,
    REINDEX,
    REPACK,
    REPAIR,
    REPRESENTATION,
    SCOPE_BACKFILL,
    SCOPE_REMOVAL,
    SUMMARY,
    WEBHOOK,
    unit_of,
)
from memservice.services.transfer.record_formats import SPACED
from memservice.telemetry.context import request_id


def after_messages(
    rt: Runtime,
    workspace: Workspace,
    session: Session,
    messages: Sequence[Message],
    configurations: Sequence[Mapping[str, Any] | None],
    authors: Mapping[int, Peer],
    members: Sequence[Member],
) -> list[Task]:
    """The tasks for new messages of a session: deriving from observed authors, and summaries at
    their intervals."""
    if is_switched_off(session):
        return []
    by_peer = {member.peer_key: member for member in members}
    observers = [
        member.peer_key for member in members if member.observe_others and member.left_at is None
    ]
    resolved: dict[int, Resolved] = {}
    tasks: list[Task] = []
    for message, configuration in zip(messages, configurations, strict=True):
        config = resolved.get(id(configuration))
        if config is None:
            config = resolved[id(configuration)] = resolve(
                rt.defaults, configuration, session.configuration, workspace.configuration
            )
        if config.reasoning and _is_observed(
            authors[message.author_key], by_peer.get(message.author_key)
        ):
            observer_keys = [
                message.author_key,
                *(key for key in observers if key != message.author_key),
            ]
            tasks.append(_representation(rt, message, observer_keys, config))
        if config.summary:
            kinds = [kind for kind, every in _intervals(config) if message.seq % every == 0]
            tasks.extend([summary(rt, message, kinds, config)] if kinds else [])
    return tasks


def is_switched_off(session: Session) -> bool:
    """Whether background work is off: in generation 1, by a key in the metadata of the session."""
    value = session.metadata.get("deriver_disabled")
    return session.owner_key is not None and value is not None and value is not False


def _is_observed(author: Peer, member: Member | None) -> bool:
    """The setting of the session, else of the peer, else True."""
    if member is not None and member.observe_me is not None:
        return member.observe_me
    return author.configuration.get("observe_me") is not False


def _intervals(config: Resolved) -> tuple[tuple[str, int], tuple[str, int]]:
    return (SHORT, config.messages_per_short_summary), (LONG, config.messages_per_long_summary)


def _task(rt: Runtime, kind: str, **fields: Any) -> Task:
    task = Task(
        uid=new_uid(),
        kind=kind,
        unit="",
        request_id=request_id(),
        not_before=IMMEDIATELY,
        created_at=rt.clock(),
        **fields,
    )
    return replace(task, unit=unit_of(task))


MAX_PAUSE = timedelta(hours=5)
"""Maximum pause after a failure. Webhooks have the longest, slightly below it."""
CENTURY_SECONDS = 100 * 365 * 86_400.0


def latest(rt: Runtime) -> datetime:
    """The latest plausible `not_before` of a task. A later one was set by a clock that was ahead:
    such a task is due."""
    longest = max(
        MAX_PAUSE.total_seconds(),
        rt.settings.dream.idle_timeout_minutes * 60,
        rt.settings.dream.min_hours_between_dreams * 3_600,
        rt.settings.deriver.representation_batch_max_age_seconds,
        rt.settings.deriver.representation_batch_quiet_seconds,
    )
    return rt.clock() + timedelta(seconds=min(longest, CENTURY_SECONDS), minutes=1)


def is_due(rt: Runtime, task: Task) -> bool:
    """Whether a pending task is due, by the same rule as `Tasks.ready`."""
    return task.not_before <= rt.clock() or latest(rt) < task.not_before < NEVER


def _representation(
    rt: Runtime, message: Message, observer_keys: list[int], config: Resolved
) -> Task:
    return _task(
        rt,
        REPRESENTATION,
        workspace_key=message.workspace_key,
        session_key=message.session_key,
        observed_key=message.author_key,
        message_key=message.key,
        # Stored now: the configuration at the time of the message counts when the task runs.
        payload={"observers": observer_keys, "instructions": config.instructions.get("reasoning")},
    )


def summary(rt: Runtime, message: Message, kinds: list[str], config: Resolved) -> Task:
    """Write summaries of these kinds of the messages up to this one."""
    return _task(
        rt,
        SUMMARY,
        workspace_key=message.workspace_key,
        session_key=message.session_key,
        message_key=message.key,
        payload={"kinds": kinds, "instructions": config.instructions.get("summary")},
    )


def embed(
    rt: Runtime, kind: str, workspace_key: int, keys: Sequence[int], like: Sequence[int] = ()
) -> Task:
    """Embed rows, if the embedder or the index is too slow for the request path.

    `like`: for each of `keys`, the row with the same text, so that its vector can be copied.
    """
    payload = {"kind": kind, "keys": list(keys)} | ({"like": list(like)} if like else {})
    return _task(rt, EMBED, workspace_key=workspace_key, payload=payload)


def index(rt: Runtime, workspace_key: int, keys: Sequence[int]) -> Task:
    """Add messages to the text index, if they are too many for the write that stores them."""
    return _task(rt, INDEX, workspace_key=workspace_key, payload={"keys": list(keys)})


def reindex(rt: Runtime, workspace_key: int) -> Task:
    """Index all texts of a workspace again, while it is in use."""
    return _task(rt, REINDEX, workspace_key=workspace_key, payload={})


def delete_vectors(rt: Runtime, kind: str, workspace_key: int, keys: Sequence[int]) -> Task:
    """Remove rows from a vector index outside the storage; in the unit of `embed`, so after they
    were added."""
    task = embed(rt, kind, workspace_key, keys)
    return replace(task, kind=DELETE_VECTORS)


def repair(
    rt: Runtime, kind: str, workspace_key: int, keys: Sequence[int], orphans: Sequence[int]
) -> Task:
    """Add missing vectors of rows, and remove vectors without a row: in the unit of `embed`."""
    task = embed(rt, kind, workspace_key, keys)
    return replace(task, kind=REPAIR, payload={**task.payload, "orphans": list(orphans)})


def scope_backfill(rt: Runtime, scope: Peer, session: Session) -> Task:
    """Copy the conclusions from a session into a scope that it joined."""
    return _task(
        rt,
        SCOPE_BACKFILL,
        workspace_key=session.workspace_key,
        session_key=session.key,
        observer_key=scope.key,
    )


def scope_removal(rt: Runtime, scope: Peer, session: Session) -> Task:
    """Remove from a scope the conclusions from a session that left it: in the unit of
    `scope_backfill`, so that additions and removals run in order."""
    return replace(scope_backfill(rt, scope, session), kind=SCOPE_REMOVAL)


def erase_session(rt: Runtime, session: Session) -> Task:
    """Erase a session that is being deleted. Only the payload refers to the session: its own tasks
    are erased with it."""
    payload = {"session": session.key, "workspace": session.workspace_key}
    return _task(rt, ERASE, payload=payload)


def erase_workspace(rt: Runtime, workspace: Workspace) -> Task:
    """Like `erase_session`, for a workspace."""
    return _task(rt, ERASE, payload={"workspace": workspace.key})


def erase_messages(
    rt: Runtime, session: Session, rows: Mapping[str, Any], counts: Mapping[str, int]
) -> Task:
    """Remove what remains of erased messages of a session. `rows`: the erased ones
    (`services.erasure.erased.named`); `counts`: their number by table. Like `erase_session`, only
    the payload refers to the session."""
    payload = {"messages": session.key, "workspace": session.workspace_key, **rows}
    return _task(rt, ERASE, payload=payload, outcome=dict(counts))


def erase_conclusions(
    rt: Runtime, workspace: Workspace, rows: Mapping[str, Any], counts: Mapping[str, int]
) -> Task:
    """Like `erase_messages`, for conclusions of a workspace."""
    payload = {"conclusions": rows["uids"][0], "workspace": workspace.key, **rows}
    return _task(rt, ERASE, payload=payload, outcome=dict(counts))


REDACTION = "redaction"
"""Entry of the payload of an erasure of a peer, until its mentions are replaced."""


def erase_peer(
    rt: Runtime,
    peer: Peer,
    names: Sequence[str] = (),
    through: Mapping[str, int] | None = None,
    counts: Mapping[str, int] | None = None,
) -> Task:
    """Erase a peer that is gone for callers. Like `erase_session`, only the payload refers to it.
    With `names`, its mentions in what others said are replaced, in rows up to the keys `through`,
    by table; then the names are removed from the payload. `counts`: the number of rows that are
    erased already, and of revoked keys, by table."""
    payload: dict[str, Any] = {"peer": peer.key, "workspace": peer.workspace_key}
    if names:
        payload[REDACTION] = {"names": list(names), "through": dict(through or {})}
    return _task(rt, ERASE, payload=payload, outcome=dict(counts or {}))


def repack(rt: Runtime, session: Session, first: int) -> Task:
    """Close the gap at position `first` of a session."""
    return _task(
        rt,
        REPACK,
        workspace_key=session.workspace_key,
        session_key=session.key,
        payload={"first": first},
    )


def representation_unit(session: Session, author_key: int) -> str:
    return f"{REPRESENTATION}:{session.workspace_key}:{session.key}:{author_key}"


def summary_unit(session: Session) -> str:
    return f"{SUMMARY}:{session.workspace_key}:{session.key}"


def embed_units(workspace_key: int) -> tuple[str, ...]:
    """The units of the tasks that change vectors of a workspace."""
    return tuple(f"{EMBED}:{workspace_key}:{kind}" for kind in SPACED)


def reembed_unit(workspace_key: int) -> str:
    """The unit of the lease on moving a workspace to another embedder. It has no tasks."""
    return f"reembed:{workspace_key}"


def webhook_unit(endpoint: WebhookEndpoint) -> str:
    return f"{WEBHOOK}:{endpoint.workspace_key}:{endpoint.key}"


def webhook(rt: Runtime, endpoint: WebhookEndpoint, event_uid: str, event: str, body: str) -> Task:
    """Deliver one event to one endpoint."""
    return _task(
        rt,
        WEBHOOK,
        workspace_key=endpoint.workspace_key,
        payload={"endpoint": endpoint.key, "event_uid": event_uid, "event": event, "body": body},
    )


def dream(rt: Runtime, collection: Collection, payload: Mapping[str, Any]) -> Task:
    """Consolidate one peer's conclusions about another. It belongs to no session; the payload
    contains the one that it is for."""
    return _of_pair(rt, DREAM, collection, payload)


def card(rt: Runtime, collection: Collection, session: Session) -> Task:
    """Refresh the card of a pair after a batch of messages of this session."""
    task = _of_pair(rt, CARD, collection, {})
    return replace(task, session_key=session.key)


def dream_timer(rt: Runtime, collection: Collection, at: datetime) -> Task:
    return replace(_of_pair(rt, DREAM_TIMER, collection, {}), not_before=at)


def _of_pair(rt: Runtime, kind: str, collection: Collection, payload: Mapping[str, Any]) -> Task:
    return _task(
        rt,
        kind,
        workspace_key=collection.workspace_key,
        observer_key=collection.observer_key,
        observed_key=collection.observed_key,
        payload=dict(payload),
    )
