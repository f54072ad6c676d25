"""The data of one person: everything that a workspace stores of a peer and about it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from memservice.domain.configuration import allows_self_service
from memservice.domain.errors import NotFound
from memservice.domain.filters import all_of, equals
from memservice.domain.filters.ast import Compare, Condition
from memservice.domain.records import (
    LIVE,
    PEER,
    SUPERSEDED,
    ApiKey,
    Card,
    Conclusion,
    Document,
    JsonObject,
    Member,
    Message,
    Metamessage,
    NamedCollection,
    Peer,
    Workspace,
)
from memservice.domain.times import wire_seconds
from memservice.runtime import Runtime
from memservice.services.auth import policy
from memservice.services.auth.principal import Principal
from memservice.spi.rows import BY_KEY
from memservice.spi.storage import Transaction

BATCH_SIZE = 500
FORMAT = "memservice person"
VERSION = 1


def export(rt: Runtime, principal: Principal, workspace_id: str, peer_id: str) -> Iterator[bytes]:
    """JSON lines: a header, then the peer, its memberships, messages, cards, conclusions, documents
    and keys (without tokens), each with a `type`, and a last line with the number of each.

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
        "metadata": peer.metadata,
        "configuration": peer.configuration,
        "created_at": wire_seconds(peer.created_at),
    }
    about = all_of(
        equals(workspace_key=workspace.key, observed=peer.slug, state=(LIVE, SUPERSEDED)),
        equals(observed_key=peer.key),
    )
    by_peer = equals(observer_key=peer.key, state=(LIVE, SUPERSEDED))
    yield from _each(tx, Member, equals(peer_key=peer.key), _membership)
    yield from _each(tx, Message, equals(author_key=peer.key), _message)
    yield from _each(tx, Card, equals(workspace_key=workspace.key, target=peer.slug), _card)
    for row in _each(tx, Card, equals(observer_key=peer.key), _card):
        if row["target_id"] != peer.slug:
            yield row
    yield from _each(tx, Conclusion, about, _conclusion)
    for row in _each(tx, Conclusion, by_peer, _conclusion):
        if row["observed_id"] != peer.slug:
            yield row
    yield from _each(tx, NamedCollection, equals(owner_key=peer.key), _collection)
    yield from _each(tx, Document, equals(owner_key=peer.key), _document)
    yield from _each(tx, Metamessage, equals(owner_key=peer.key), _metamessage)
    yield from _each(
        tx, ApiKey, equals(workspace=workspace.slug, peer=peer.slug, peer_uid=peer.uid), _key
    )


def _each(
    tx: Transaction,
    record: type[Any],
    condition: Condition,
    shown: Callable[[Any], JsonObject],
) -> Iterator[JsonObject]:
    after = 0
    while True:
        rows = tx.rows.page(
            record, all_of(condition, Compare("key", "gt", after)), BY_KEY, BATCH_SIZE
        )
        yield from map(shown, rows)
        if len(rows) < BATCH_SIZE:
            return
        after = rows[-1].key


def _membership(member: Member) -> JsonObject:
    return {
        "type": "membership",
        "session_id": member.session,
        "joined_at": wire_seconds(member.joined_at),
        "left_at": None if member.left_at is None else wire_seconds(member.left_at),
    }


def _message(message: Message) -> JsonObject:
    return {
        "type": "message",
        "id": message.uid,
        "session_id": message.session,
        "content": message.content,
        "metadata": message.metadata,
        "created_at": wire_seconds(message.created_at),
    }


def _card(card: Card) -> JsonObject:
    return {
        "type": "card",
        "target_id": card.target,
        "lines": card.lines,
        "updated_at": wire_seconds(card.updated_at),
    }


def _conclusion(conclusion: Conclusion) -> JsonObject:
    return {
        "type": "conclusion",
        "id": conclusion.uid,
        "observer_id": conclusion.observer,
        "observed_id": conclusion.observed,
        "session_id": conclusion.session,
        "level": conclusion.level,
        "state": conclusion.state,
        "content": conclusion.content,
        "metadata": conclusion.metadata,
        "said_at": wire_seconds(conclusion.said_at),
        "created_at": wire_seconds(conclusion.created_at),
    }


def _collection(collection: NamedCollection) -> JsonObject:
    return {
        "type": "collection",
        "id": collection.uid,
        "name": collection.name,
        "metadata": collection.metadata,
        "created_at": wire_seconds(collection.created_at),
    }


def _document(document: Document) -> JsonObject:
    return {
        "type": "document",
        "id": document.uid,
        "content": document.content,
        "metadata": document.metadata,
        "created_at": wire_seconds(document.created_at),
    }


def _metamessage(metamessage: Metamessage) -> JsonObject:
    return {
        "type": "metamessage",
        "id": metamessage.uid,
        "label": metamessage.label,
        "content": metamessage.content,
        "metadata": metamessage.metadata,
        "created_at": wire_seconds(metamessage.created_at),
    }


def _key(key: ApiKey) -> JsonObject:
    return {
        "type": "key",
        "id": key.uid,
        "label": key.label,
        "created_at": wire_seconds(key.created_at),
        "expires_at": None if key.expires_at is None else wire_seconds(key.expires_at),
        "revoked_at": None if key.revoked_at is None else wire_seconds(key.revoked_at),
        "last_used_at": None if key.last_used_at is None else wire_seconds(key.last_used_at),
    }
