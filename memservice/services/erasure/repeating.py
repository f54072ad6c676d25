"""Repeating erasures from their receipts. A restored backup has what was erased after it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from msgspec import Struct

from memservice.domain.errors import NotFound
from memservice.domain.records import ACTIVE, PEER, Message, Peer, Session, Workspace
from memservice.domain.times import parse_time
from memservice.runtime import Runtime
from memservice.services import deletion
from memservice.services.auth import policy
from memservice.services.auth.permissions import Permission
from memservice.services.auth.principal import Principal
from memservice.services.erasure import mentions, messages, peers, receipts
from memservice.spi.storage import Transaction

REPEATED, ABSENT, NEWER, BY_RETENTION = "repeated", "absent", "newer", "by retention"
"""Outcomes: erased again; there is nothing to erase; what has the id was created after the erasure,
so it is something else; retention erases it again by itself."""
_KINDS = (receipts.MESSAGE, receipts.PEER, receipts.SESSION, receipts.WORKSPACE)
_RETENTION_KINDS = (receipts.MESSAGES, receipts.CONCLUSIONS)


class EarlierErasure(Struct, frozen=True):
    """What an exported receipt says about its erasure."""

    kind: str
    workspace: str
    session: str
    """Empty unless it is a message's."""
    target: str
    mentions: str
    created_at: datetime
    """In whole seconds, rounded down."""


def parse(receipt: Mapping[str, Any]) -> EarlierErasure:
    """An exported receipt (`receipts.as_json`). Raises ValueError."""
    kind = _text(receipt, "kind")
    if kind not in (*_KINDS, *_RETENTION_KINDS):
        kinds = ", ".join((*_KINDS, *_RETENTION_KINDS))
        raise ValueError(f"kind {kind!r} is unknown; known kinds: {kinds}")
    options = receipt.get("options")
    choice = options.get("mentions", mentions.KEEP) if isinstance(options, dict) else mentions.KEEP
    if choice not in mentions.CHOICES:
        raise ValueError(f"options.mentions is {choice!r}; known: {', '.join(mentions.CHOICES)}")
    return EarlierErasure(
        kind=kind,
        workspace=_text(receipt, "workspace_id"),
        session=_text(receipt, "session_id") if kind == receipts.MESSAGE else "",
        target=_text(receipt, "target_id"),
        mentions=choice,
        created_at=parse_time(_text(receipt, "created_at")),
    )


def repeat(
    rt: Runtime, principal: Principal, erasure: EarlierErasure, *, dry_run: bool = False
) -> str:
    """Erase again what the receipt names, if it is in the store. Returns the outcome; `dry_run`
    changes nothing and returns what it would be."""
    policy.require_admin(principal, needs=Permission.DELETE_WORKSPACES)
    if erasure.kind in _RETENTION_KINDS:
        return BY_RETENTION
    with rt.storage.read() as tx:
        row = _row(tx, erasure)
    if row is None:
        return ABSENT
    # The id of a message is never used again, and its time is the caller's.
    if not isinstance(row, Message) and row.created_at.replace(microsecond=0) > erasure.created_at:
        return NEWER
    if dry_run:
        return REPEATED
    try:
        _erase(rt, principal, erasure)
    except NotFound:
        return ABSENT  # another request has erased it meanwhile
    return REPEATED


def _row(tx: Transaction, erasure: EarlierErasure) -> Workspace | Session | Peer | Message | None:
    workspace = tx.workspaces.by_slug(erasure.workspace)
    if workspace is None or erasure.kind == receipts.WORKSPACE:
        return workspace
    if erasure.kind == receipts.PEER:
        peer = tx.peers.by_slug(workspace.key, erasure.target)
        return peer if peer is not None and peer.kind == PEER else None
    session_id = erasure.session or erasure.target
    session = tx.sessions.by_slug(workspace.key, session_id)
    if session is None or session.state != ACTIVE:
        return None
    return tx.messages.by_uid(session.key, erasure.target) if erasure.session else session


def _erase(rt: Runtime, principal: Principal, erasure: EarlierErasure) -> None:
    workspace, target = erasure.workspace, erasure.target
    match erasure.kind:
        case receipts.WORKSPACE:
            deletion.delete_workspace(rt, principal, workspace, with_sessions=True)
        case receipts.PEER:
            peers.erase(rt, principal, workspace, target, erasure.mentions)
        case receipts.SESSION:
            deletion.delete_session(rt, principal, workspace, target)
        case _:
            messages.delete(rt, principal, workspace, erasure.session, target)


def _text(receipt: Mapping[str, Any], name: str) -> str:
    value = receipt.get(name)
    if not isinstance(value, str) or not value:
        raise ValueError(f"{name} is missing")
    return value
