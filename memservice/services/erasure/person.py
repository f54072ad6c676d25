"""The data of one person: everything that a workspace stores of a peer and about it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from memservice.domain.configuration import allows_self_service
from memservice.domain.errors import NotFound
from memservice.domain.filters import all_of, equals
from memservice.domain.filters.ast import Any_, Compare, Condition
from memservice.domain.records import (
    LIVE,
    PEER,
    SUPERSEDED,
    ApiKey,
    Card,
    Collection,
    Conclusion,
    Document,
    JsonObject,
    Member,
    Message,
    Metamessage,
    NamedCollection,
    Peer,
    PeerName,
    ScopeSession,
    Session,
    Task,
    Workspace,
)
from memservice.domain.times import wire_seconds
from memservice.runtime import Runtime
from memservice.services.auth import policy
from memservice.services.auth.principal import Principal
from memservice.services.dream_changes import CHANGES, PROPOSAL
from memservice.services.supersession import REASON
from memservice.services.tasks import kinds
from memservice.spi.rows import BY_KEY
from memservice.spi.storage import Transaction

BATCH_SIZE = 500
FORMAT = "memservice person"
VERSION = 1


def export(rt: Runtime, principal: Principal, workspace_id: str, peer_id: str) -> Iterator[bytes]:
    """JSON lines: a header, then the peer, its sessions, memberships, messages, cards, conclusions,
    dreams that propose something or changed a card, documents and keys (without tokens), each with
    a `type`, and a last line with the number of each.

    All rows are read in one transaction, which stays open until they are written; at most
    `BATCH_SIZE` are in memory. Raises NotFound, and Unauthorised for a peer's own key unless the
    workspace allows self-service, before the first line.
    """
    policy.require(principal, workspace_id, peer_id=peer_id)
    with rt.storage.read() as tx:
        _find(tx, principal, workspace_id, peer_id)
    return _lines(rt, principal, workspace_id, peer_id)


def _find(
    tx: Transaction, principal: Principal, workspace_id: str, peer_id: str
) -> tuple[Workspace, Peer]:
    workspace = tx.workspaces.by_slug(workspace_id)
    policy.require_self_service(
        principal, workspace is not None and allows_self_service(workspace.configuration)
    )
    peer = None if workspace is None else tx.peers.by_slug(workspace.key, peer_id)
    if workspace is None or peer is None or peer.kind != PEER:
        raise NotFound(f"Peer {peer_id} not found in workspace {workspace_id}")
    return workspace, peer


def _lines(rt: Runtime, principal: Principal, workspace_id: str, peer_id: str) -> Iterator[bytes]:
    header = {
        "type": "header",
        "format": FORMAT,
        "version": VERSION,
        "workspace_id": workspace_id,
        "peer_id": peer_id,
        "exported_at": wire_seconds(rt.clock()),
    }
    yield _line(header)
    counts: dict[str, int] = {}
    with rt.storage.read() as tx:
        workspace, peer = _find(tx, principal, workspace_id, peer_id)
        for row in _rows(tx, workspace, peer):
            counts[row["type"]] = counts.get(row["type"], 0) + 1
            yield _line(row)
    yield _line({"type": "end", "counts": counts})


def _line(row: JsonObject) -> bytes:
    return (json.dumps(row, ensure_ascii=False, default=str) + "\n").encode()


def _rows(tx: Transaction, workspace: Workspace, peer: Peer) -> Iterator[JsonObject]:
    yield {
        "type": "peer",
        "id": peer.slug,
        "name": peer.v1_name,
        "role": peer.v1_role,
        "metadata": peer.metadata,
        "configuration": peer.configuration,
        "created_at": wire_seconds(peer.created_at),
    }
    about = all_of(
        equals(workspace_key=workspace.key, observed=peer.slug, state=(LIVE, SUPERSEDED)),
        equals(observed_key=peer.key),
    )
    by_peer = equals(observer_key=peer.key, state=(LIVE, SUPERSEDED))
    yield from _each(tx, Session, equals(workspace_key=workspace.key, owner_key=peer.key))
    yield from _each(tx, Member, equals(peer_key=peer.key))
    yield from _each(tx, Message, equals(author_key=peer.key))
    yield from _each(tx, Card, equals(workspace_key=workspace.key, target=peer.slug))
    for row in _each(tx, Card, equals(observer_key=peer.key)):
        if row["target_id"] != peer.slug:
            yield row
    yield from _each(tx, Conclusion, about)
    for row in _each(tx, Conclusion, by_peer):
        if row["observed_id"] != peer.slug:
            yield row
    of_peer = (equals(observer_key=peer.key), equals(observed_key=peer.key))
    dreams = equals(workspace_key=workspace.key, kind=kinds.DREAM)
    for row in _each(tx, Task, all_of(dreams, Any_(of_peer))):
        # Other dreams changed only conclusions, which have rows of their own.
        if row["conclusions"] or row["lines"] or row["earlier_lines"] or row["reasons"]:
            yield row
    yield from _each(tx, NamedCollection, equals(owner_key=peer.key))
    yield from _each(tx, Document, equals(owner_key=peer.key))
    yield from _each(tx, Metamessage, equals(owner_key=peer.key))
    yield from _each(
        tx, ApiKey, equals(workspace=workspace.slug, peer=peer.slug, peer_uid=peer.uid)
    )


WITHOUT: Mapping[type[Any], str] = {
    PeerName: "words of the names, for the search for names",
    Collection: "numbers of conclusions",
    ScopeSession: "of scopes, which are no persons",
}
"""Kinds of record that refer to a peer and are not in the file, with what they have."""


def _each(tx: Transaction, record: type[Any], condition: Condition) -> Iterator[JsonObject]:
    after = 0
    while True:
        rows = tx.rows.page(
            record, all_of(condition, Compare("key", "gt", after)), BY_KEY, BATCH_SIZE
        )
        yield from map(_shown, rows)
        if len(rows) < BATCH_SIZE:
            return
        after = rows[-1].key


def _same(*fields: str) -> dict[str, str]:
    """Fields that have one name in the file and in the record."""
    return {field: field for field in fields}


_FIELDS: Mapping[type[Any], tuple[str, Mapping[str, str]]] = {
    Session: ("session", {"id": "slug", **_same("metadata", "configuration", "created_at")}),
    Member: (
        "membership",
        {
            "session_id": "session",
            **_same("observe_me", "observe_others", "joined_at", "left_at"),
        },
    ),
    Message: (
        "message",
        {"id": "uid", "session_id": "session", **_same("content", "metadata", "created_at")},
    ),
    Card: ("card", {"target_id": "target", **_same("lines", "updated_at")}),
    Conclusion: (
        "conclusion",
        {
            "id": "uid",
            "observer_id": "observer",
            "observed_id": "observed",
            "session_id": "session",
            **_same("level", "state", "content", "metadata", "said_at", "created_at"),
            "superseded_at": "superseded_at",
        },
    ),
    Task: ("dream", {"id": "uid", **_same("state", "created_at")}),
    NamedCollection: ("collection", {"id": "uid", **_same("name", "metadata", "created_at")}),
    Document: ("document", {"id": "uid", **_same("content", "metadata", "created_at")}),
    Metamessage: (
        "metamessage",
        {"id": "uid", **_same("label", "content", "metadata", "created_at")},
    ),
    ApiKey: (
        "key",
        {"id": "uid", **_same("label", "created_at", "expires_at", "revoked_at", "last_used_at")},
    ),
}
"""Record → its `type` in the file, and its fields there → those of the record."""


def _shown(row: Any) -> JsonObject:
    kind, fields = _FIELDS[type(row)]
    shown = {"type": kind, **{name: _value(getattr(row, field)) for name, field in fields.items()}}
    if isinstance(row, Conclusion):
        shown["reason"] = row.internal.get(REASON)
    elif isinstance(row, Task):
        shown |= _texts_of_dream(row)
    return shown


def _texts_of_dream(task: Task) -> JsonObject:
    """What a dream proposes, and what it changed in a card, with the lines from before."""
    proposal, changes = task.payload.get(PROPOSAL) or {}, task.payload.get(CHANGES) or {}
    card = changes.get("card") or {}
    superseded = [step["reason"] for step in proposal.get("superseded", ())]
    return {
        "conclusions": [statement["content"] for statement in proposal.get("created", ())],
        "lines": proposal.get("card") or card.get("after") or [],
        "earlier_lines": card.get("before") or [],
        "reasons": [text for text in (proposal.get("reason"), *superseded) if text],
    }


def _value(value: object) -> object:
    return wire_seconds(value) if isinstance(value, datetime) else value
