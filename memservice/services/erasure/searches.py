"""Every place where something of erased rows can be, and how it is searched: an erasure is `done`
only after a search of all of them found nothing.

A new kind of record must be added here: to `BY_TABLE`, or to `WITHOUT` with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from memservice.domain import records as r
from memservice.domain.filters import all_of, equals
from memservice.domain.filters.ast import Condition
from memservice.runtime import Runtime
from memservice.services.erasure import (
    cards,
    dream_cards,
    notes,
    reasons,
    redacted_names,
    remains,
)
from memservice.services.erasure.erased import Erased
from memservice.services.transfer.record_formats import SPACED
from memservice.spi.schema import TABLES
from memservice.spi.storage import Transaction

Found = tuple[bool, int | None]
"""Whether something is left, and the last key of a search that goes on; None at its end."""
TableSearch = Callable[[Transaction, Erased, int], Found]
"""Searches one table from a key on. It reads at most `remains.BATCH_SIZE` rows of those that no
index selects."""

REFERENCES: Mapping[str, type[Any]] = {
    "workspace_key": r.Workspace,
    "session_key": r.Session,
    "peer_key": r.Peer,
    "author_key": r.Peer,
    "owner_key": r.Peer,
    "observer_key": r.Peer,
    "observed_key": r.Peer,
    "scope_key": r.Peer,
    "message_key": r.Message,
}
"""Fields that name a row by its key, in any record."""
OTHER_REFERENCES = {"collection_key", "endpoint_key", "message_keys"}
"""The others: the first two name rows that are erased with their own, the last one is searched in
each record that has it."""
_WITH_KEYS = ("peer", "session", "workspace")
"""Kinds of erasure that revoke API keys."""
_WITHIN_WORKSPACE = {
    (r.Conclusion, "observed_key"),
    (r.ScopeSession, "scope_key"),
    (r.Summary, "message_key"),
}
"""Fields that only the index of the workspace selects."""


def _rows(record: type[Any]) -> TableSearch:
    """Erased rows of a record, and rows that name erased ones."""
    names = [name for name in record.__struct_fields__ if name in REFERENCES]

    def search(tx: Transaction, erased: Erased, after: int) -> Found:
        conditions = [(name, keys) for name in names if (keys := erased.keys.get(REFERENCES[name]))]
        if own := erased.keys.get(record):
            conditions.append(("key", own))
        return any(
            tx.rows.count(record, _naming(record, name, keys, erased), limit=1)
            for name, keys in conditions
        ), None

    return search


def _naming(record: type[Any], name: str, keys: frozenset[int], erased: Erased) -> Condition:
    condition = equals(**{name: tuple(sorted(keys))})
    if (record, name) in _WITHIN_WORKSPACE:
        condition = all_of(equals(workspace_key=erased.workspace_key), condition)
    return condition


def _peers(tx: Transaction, erased: Erased, after: int) -> Found:
    """Peers of an erased workspace, and peers that are not hidden as erased ones: the row of an
    erased peer goes last."""
    if workspaces := erased.keys.get(r.Workspace):
        of_workspace = equals(workspace_key=tuple(workspaces))
        return bool(tx.rows.count(r.Peer, of_workspace, limit=1)), None
    keys = erased.keys.get(r.Peer, frozenset())
    rows = tx.rows.page(r.Peer, equals(key=tuple(keys))) if keys else []
    return any(row.kind != r.ERASED or row.metadata or row.configuration for row in rows), None


def _idempotency_keys(tx: Transaction, erased: Erased, after: int) -> Found:
    rows, missing, last = remains.next_idempotency_keys(tx, erased, after)
    return any(not missing.isdisjoint(row.message_keys) for row in rows), last


def _cards(tx: Transaction, erased: Erased, after: int) -> Found:
    return erased.before is not None and cards.are_left(tx, erased.collections, erased.before), None


def _cards_of_dreams(tx: Transaction, erased: Erased, after: int) -> Found:
    if erased.before is None:
        return False, None
    return dream_cards.are_left(tx, erased, erased.before), None


def _sources(tx: Transaction, erased: Erased, after: int) -> Found:
    messages = sorted(erased.keys.get(r.Message, ()))
    return bool(
        tx.conclusions.of_messages(erased.workspace_key, messages)
        or tx.conclusions.based_on(erased.workspace_key, sorted(erased.uids))
    ), None


def _reasons(tx: Transaction, erased: Erased, after: int) -> Found:
    return erased.before is not None and reasons.are_left(tx, erased, erased.before), None


def _representations(tx: Transaction, erased: Erased, after: int) -> Found:
    if erased.before is None:
        return False, None
    return notes.representations_left(tx, erased.owners, erased.before), None


def _tasks(tx: Transaction, erased: Erased, after: int) -> Found:
    tasks, missing, last = remains.next_tasks(tx, erased, after)
    return any(missing.are_in(task) or missing.are_quoted(task) for task in tasks), last


def _names(tx: Transaction, erased: Erased, after: int) -> Found:
    tasks, last = redacted_names.search(tx, erased, after)
    return bool(tasks), last


def _events(tx: Transaction, erased: Erased, after: int) -> Found:
    tasks = () if after else remains.naming_tasks(tx, erased)
    deliveries, last = remains.naming_deliveries(tx, erased, after)
    return bool(tasks or deliveries), last


def _api_keys(tx: Transaction, erased: Erased, after: int) -> Found:
    """Keys of an erased peer, session or workspace that are not revoked."""
    receipt = erased.receipt
    if receipt is None or receipt.kind not in _WITH_KEYS:
        return False, None
    own = equals(**{f"{receipt.kind}_uid": receipt.target_uid}, revoked_at=None)
    condition = all_of(equals(workspace=receipt.workspace), own)
    return bool(tx.rows.count(r.ApiKey, condition, limit=1)), None


BY_TABLE: Mapping[type[Any], Sequence[TableSearch]] = {
    r.Workspace: (_rows(r.Workspace),),
    r.Peer: (_peers,),
    r.PeerName: (_rows(r.PeerName),),
    r.Session: (_rows(r.Session),),
    r.Member: (_rows(r.Member),),
    r.Message: (_rows(r.Message),),
    r.IdempotencyKey: (_rows(r.IdempotencyKey), _idempotency_keys),
    r.Summary: (_rows(r.Summary),),
    r.Collection: (_rows(r.Collection),),
    r.Card: (_rows(r.Card), _cards),
    r.Conclusion: (_rows(r.Conclusion), _sources, _reasons),
    r.NamedCollection: (_rows(r.NamedCollection),),
    r.Document: (_rows(r.Document),),
    r.Metamessage: (_rows(r.Metamessage), _representations),
    r.Task: (_tasks, _names, _cards_of_dreams),
    r.ScopeSession: (_rows(r.ScopeSession),),
    r.Space: (_rows(r.Space),),
    r.WebhookEndpoint: (_rows(r.WebhookEndpoint),),
    r.Delivery: (_rows(r.Delivery), _events),
    r.ApiKey: (_api_keys,),
}
"""How each kind of record is searched."""

WITHOUT: Mapping[type[Any], str] = {
    r.Lease: "names of work units",
    r.Usage: "numbers of tokens, for the costs",
    r.ConsoleMember: "accounts of the console",
    r.ConsoleLink: "accounts of the console",
    r.BrowserSession: "accounts of the console",
    r.SignInFailures: "accounts of the console",
    r.AuditEntry: "actions in the console: names and ids, until `RETENTION_AUDIT_DAYS`",
    r.Erasure: "ids and counts",
    r.Fact: "facts about the store",
}
"""Kinds of record that have nothing of erased rows, with what they have."""


class Search(Struct, frozen=True):
    name: str
    _search: Callable[[Runtime, Transaction | None, Erased, int], Found]
    in_store: bool = True
    """Whether it is searched in a transaction of the storage; others only outside any."""
    of_batches: bool = True
    """Whether it selects rows by their keys, so that it is searched after each batch of an erasure
    in many. The others are read row by row, at the end."""

    def search(self, rt: Runtime, erased: Erased, after: int) -> Found:
        """TableSearch for a while. Call it outside any transaction."""
        if not self.in_store:
            return self._search(rt, None, erased, after)
        with rt.storage.read() as tx:
            return self._search(rt, tx, erased, after)

    def finds(self, rt: Runtime, tx: Transaction | None, erased: Erased) -> bool:
        """Whether the first step of the search finds something; in the open transaction `tx` if it
        is in the store."""
        return self._search(rt, tx, erased, 0)[0]


_PARTS: Mapping[TableSearch, str] = {
    _idempotency_keys: "messages of idempotency records",
    _cards: "lines of cards",
    _cards_of_dreams: "lines of cards in dreams",
    _sources: "sources of conclusions",
    _reasons: "reasons of supersession",
    _representations: "representations in metamessages",
    _events: "events for webhooks",
    _names: "names in tasks of erasures",
}
_ROW_BY_ROW = (_idempotency_keys, _tasks, _names, _events)


def _table(name: str, search: TableSearch) -> Search:
    def searched(rt: Runtime, tx: Transaction | None, erased: Erased, after: int) -> Found:
        assert tx is not None
        return search(tx, erased, after)

    return Search(_PARTS.get(search, name), searched, of_batches=search not in _ROW_BY_ROW)


def _texts(rt: Runtime, tx: Transaction | None, erased: Erased, after: int) -> Found:
    text, workspace_key = rt.storage.text, erased.workspace_key
    return any(
        text.sizes(tx, kind, [workspace_key]).get(workspace_key)
        if r.Workspace in erased.keys
        else text.indexed(tx, kind, workspace_key, sorted(erased.of_kind(kind)))
        for kind in SPACED
    ), None


def _vectors(rt: Runtime, tx: Transaction | None, erased: Erased, after: int) -> Found:
    if not rt.vectors_transactional:
        return False, None
    assert tx is not None
    spaces = tx.spaces.of_workspace(erased.workspace_key)
    return any(_has_vectors(rt, tx, space, erased) for space in spaces), None


def _vectors_outside(rt: Runtime, tx: Transaction | None, erased: Erased, after: int) -> Found:
    return vectors_left_outside(rt, erased), None


def vectors_left_outside(rt: Runtime, erased: Erased) -> bool:
    """Whether a vector index outside the storage has something of erased rows. Call it outside any
    transaction."""
    if rt.vectors_transactional:
        return False
    with rt.storage.read() as tx:
        spaces = tx.spaces.of_workspace(erased.workspace_key)
    return any(_has_vectors(rt, None, space, erased) for space in spaces)


def _has_vectors(rt: Runtime, tx: Transaction | None, space: r.Space, erased: Erased) -> bool:
    keys = sorted(erased.of_kind(space.kind))
    return bool(keys and rt.vectors.fetch(tx, space, keys))


def _traces(rt: Runtime, tx: Transaction | None, erased: Erased, after: int) -> Found:
    receipt = erased.receipt
    if receipt is None or erased.before is None:
        return False, None
    return remains.traces_left(rt, receipt.workspace, erased.before), None


SEARCHES: Sequence[Search] = (
    *(_table(spec.name, search) for spec in TABLES for search in BY_TABLE.get(spec.record, ())),
    Search("text index", _texts),
    Search("vector index", _vectors),
    Search("vector index outside the storage", _vectors_outside, in_store=False),
    Search("file of traces", _traces, in_store=False, of_batches=False),
)


def left_of_batch(rt: Runtime, erased: Erased) -> list[str]:
    """The places where something is left of a batch of rows, without those that are read row by
    row. Call it outside any transaction."""
    with rt.storage.read() as tx:
        left = [
            search.name
            for search in SEARCHES
            if search.of_batches and search.in_store and search.finds(rt, tx, erased)
        ]
    return left + [
        search.name
        for search in SEARCHES
        if search.of_batches and not search.in_store and search.finds(rt, None, erased)
    ]
