"""Retention: messages and conclusions are erased when they are older than the configuration of
their session or workspace says. Each batch is an erasure with a receipt."""

from __future__ import annotations

from datetime import datetime, timedelta

from memservice.domain import configuration
from memservice.domain.filters import all_of, equals
from memservice.domain.filters.ast import Any_, Compare, Condition, Not
from memservice.domain.records import (
    ACTIVE,
    ARCHIVED,
    Conclusion,
    Message,
    Session,
    Workspace,
)
from memservice.runtime import Runtime
from memservice.services.erasure import (
    conclusions,
    message_rows,
    positions,
    receipts,
    summaries,
    work,
)
from memservice.services.erasure.erased import named
from memservice.services.erasure.receipts import ErasureRequest
from memservice.services.tasks import outbox
from memservice.spi.rows import Order
from memservice.spi.storage import Transaction

BATCH_SIZE = message_rows.BATCH_SIZE
"""Messages or conclusions per transaction."""
_SEQ = (Order("seq"),)


def erase_messages(rt: Runtime, session_key: int, now: datetime) -> int:
    """Erase the next messages of a session that are older than its retention at the time `now`, by
    their `created_at` or `stored_at`; at most `BATCH_SIZE`. Returns their number."""
    with rt.storage.read() as tx:
        stored = _session(tx, session_key)
        if stored is None:
            return 0
        days = configuration.retention(*_layers(*stored)).messages_days
        if days is None or not tx.rows.page(Message, _old(stored[1], now, days), _SEQ, 1):
            return 0

    def erase(tx: Transaction) -> int:
        unlocked = tx.sessions.by_key(session_key)
        if unlocked is None:
            return 0
        work.interrupt_session(tx, unlocked)
        tx.sessions.by_key(session_key, lock=True)
        current = _session(tx, session_key)
        if current is None:
            return 0
        workspace, session = current
        limit = configuration.retention(*_layers(workspace, session)).messages_days
        if limit is None:
            return 0
        messages = tx.rows.page(Message, _old(session, now, limit), _SEQ, BATCH_SIZE)
        if not messages:
            return 0
        erased = message_rows.erase(rt, tx, session, messages)
        summaries.make_again(rt, tx, session, erased.covered)
        positions.repack(rt, tx, session, messages[0].seq)
        task = outbox.erase_messages(rt, session, erased.named, erased.counts)
        request = ErasureRequest(
            receipts.MESSAGES,
            workspace,
            session.slug,
            None,
            session.slug,
            {"messages_days": limit, receipts.BEFORE: _before(now, limit).isoformat()},
        )
        receipts.open(rt, tx, receipts.RETENTION, request, task)
        tx.tasks.add([task])
        return len(messages)

    return rt.storage.write(erase)


def erase_conclusions(
    rt: Runtime, workspace_key: int, now: datetime, session_key: int | None = None
) -> int:
    """Erase the next conclusions that are older than their retention at the time `now`, by their
    `created_at`, with those that rest on them alone: of a session that sets its own number of days,
    or else of the rest of the workspace. At most `BATCH_SIZE` old ones. Returns their number."""

    def erase(tx: Transaction) -> int:
        workspace = tx.workspaces.by_key(workspace_key)
        session = None if session_key is None else tx.sessions.by_key(session_key)
        if workspace is None or workspace.state != ACTIVE:
            return 0
        layer = workspace.configuration if session is None else session.configuration
        days = configuration.retention(layer).conclusions_days
        if days is None:
            return 0
        own = (
            _without_own_days(tx, workspace)
            if session is None
            else equals(workspace_key=workspace.key, session_key=session.key)
        )
        old = all_of(own, Compare("created_at", "lt", _before(now, days)))
        rows = tx.rows.page(Conclusion, old, (Order("created_at"), Order("key")), BATCH_SIZE)
        if not rows:
            return 0
        erased = conclusions.with_dependents(tx, workspace.key, rows)
        conclusions.erase(rt, tx, workspace.key, erased)
        task = outbox.erase_conclusions(
            rt,
            workspace,
            named({}, (), erased),
            {"conclusions": len(erased)},
        )
        request = ErasureRequest(
            receipts.CONCLUSIONS,
            workspace,
            workspace.slug if session is None else session.slug,
            None,
            None if session is None else session.slug,
            {"conclusions_days": days, receipts.BEFORE: _before(now, days).isoformat()},
        )
        receipts.open(rt, tx, receipts.RETENTION, request, task)
        tx.tasks.add([task])
        return len(rows)

    return rt.storage.write(erase)


def applies(session: Session, workspace: Workspace | None) -> bool:
    """Whether the configuration of a session or its workspace has any retention."""
    return workspace is not None and (
        configuration.retention(*_layers(workspace, session)) != configuration.Retention()
    )


def sets_own_days(session: Session) -> bool:
    """Whether the session's configuration has its own retention of conclusions."""
    return configuration.retention(session.configuration).conclusions_days is not None


def _session(tx: Transaction, session_key: int) -> tuple[Workspace, Session] | None:
    session = tx.sessions.by_key(session_key)
    if session is None or session.state not in (ACTIVE, ARCHIVED):
        return None
    workspace = tx.workspaces.by_key(session.workspace_key)
    return (workspace, session) if workspace is not None and workspace.state == ACTIVE else None


def _layers(workspace: Workspace, session: Session) -> tuple[dict[str, object], dict[str, object]]:
    return session.configuration, workspace.configuration


def _before(now: datetime, days: int) -> datetime:
    return now - timedelta(days=days)


def _old(session: Session, now: datetime, days: int) -> Condition:
    """Messages that are older, by their own time or by the time at which they were stored: a
    caller may give a time in the future."""
    before = _before(now, days)
    times = (Compare("created_at", "lt", before), Compare("stored_at", "lt", before))
    return all_of(equals(session_key=session.key), Any_(times))


def _without_own_days(tx: Transaction, workspace: Workspace) -> Condition:
    """The conclusions of a workspace, without those of sessions with their own retention."""
    sessions = tx.rows.page(Session, equals(workspace_key=workspace.key))
    keys = tuple(session.key for session in sessions if sets_own_days(session))
    whole = equals(workspace_key=workspace.key)
    return all_of(whole, Not(equals(session_key=keys))) if keys else whole
