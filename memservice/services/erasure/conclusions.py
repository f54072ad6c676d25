"""Conclusions whose sources are erased: they lose these sources or, without any other source, are
erased too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from memservice.domain.filters import equals
from memservice.domain.records import DEDUCTIVE, EXPLICIT, LIVE, Conclusion, Message
from memservice.runtime import Runtime
from memservice.services import dream_changes, dreams, indexing, supersession
from memservice.services.erasure import cards, notes, reasons, work
from memservice.spi.repositories import Position
from memservice.spi.storage import Transaction


def erase_resting_on(
    rt: Runtime, tx: Transaction, workspace_key: int, messages: Sequence[Message]
) -> list[Conclusion]:
    """Erase the conclusions that rest on these messages alone, and what was concluded only from
    them. Others lose these sources. Returns the erased ones."""
    keys = {message.key for message in messages}
    return erase_without(rt, tx, workspace_key, keys, {message.uid for message in messages})


def erase_without(
    rt: Runtime,
    tx: Transaction,
    workspace_key: int,
    message_keys: Collection[int],
    uids: Collection[str],
) -> list[Conclusion]:
    """The same for messages whose rows may be erased already, with these keys and uids. `uids` may
    also have those of erased conclusions."""
    cascade = _Cascade(tx, workspace_key)
    for row in tx.conclusions.of_messages(workspace_key, sorted(message_keys)):
        remaining = [key for key in row.message_keys if key not in message_keys]
        if remaining or row.source_ids:
            cascade.changed[row.key] = replace(row, message_keys=remaining)
        else:
            cascade.erased[row.key] = row
    cascade.follow(uids)
    cascade.store(uids)
    erased = list(cascade.erased.values())
    erase(rt, tx, workspace_key, erased)
    return erased


def with_dependents(
    tx: Transaction, workspace_key: int, erased: Sequence[Conclusion]
) -> list[Conclusion]:
    """These conclusions, which are to be erased, and those that were concluded only from them.
    Others lose these sources."""
    cascade = _Cascade(tx, workspace_key)
    cascade.erased = {row.key: row for row in erased}
    cascade.follow()
    cascade.store(frozenset())
    return list(cascade.erased.values())


def erase_based_on(rt: Runtime, tx: Transaction, workspace_key: int, uids: Sequence[str]) -> int:
    """Erase what was concluded only from conclusions with these uids, which do not exist here.
    Others lose these sources. Returns the number of erased ones."""
    cascade = _Cascade(tx, workspace_key)
    cascade.follow(uids)
    cascade.store(frozenset())
    erase(rt, tx, workspace_key, list(cascade.erased.values()))
    return len(cascade.erased)


def erase(
    rt: Runtime,
    tx: Transaction,
    workspace_key: int,
    conclusions: Sequence[Conclusion],
    session_key: int | None = None,
) -> None:
    """Erase conclusions, and their texts wherever they were copied to. Conclusions that they
    superseded are live again, except those of the session `session_key`, which is being erased as
    a whole."""
    if not conclusions:
        return
    # A dream locks its lease before the pair.
    work.interrupt_pairs(tx, conclusions)
    tx.conclusions.lock_collections(row.collection_key for row in conclusions)
    explicit = Counter(
        row.collection_key for row in conclusions if row.level == EXPLICIT and row.state == LIVE
    )
    for collection_key, number in explicit.items():
        tx.conclusions.count_explicit(collection_key, -number)
    keys = tuple(row.key for row in conclusions)
    indexing.remove_rows(rt, tx, indexing.CONCLUSION, workspace_key, keys)
    dreams.restore_superseded(rt, tx, conclusions, session_key)
    dream_changes.forget(tx, conclusions)
    tx.rows.delete(Conclusion, equals(key=keys))
    reasons.remove_later(tx, conclusions)
    cards.remove_lines(rt, tx, conclusions)
    owners = {key for row in conclusions for key in (row.observer_key, row.observed_key)}
    notes.remove_representations(tx, owners, rt.clock())


class _Sources(Struct):
    """What the remaining sources of conclusions are."""

    messages: dict[int, Position]
    uids: dict[int, str]
    conclusions: dict[str, Conclusion]


class _Cascade:
    """Finds everything that rests on erased rows."""

    def __init__(self, tx: Transaction, workspace_key: int) -> None:
        self._tx = tx
        self._workspace_key = workspace_key
        self.erased: dict[int, Conclusion] = {}
        self.changed: dict[int, Conclusion] = {}
        """By key, as they will be stored."""

    def follow(self, other_uids: Iterable[str] = ()) -> None:
        """Follow the sources until nothing more rests on erased conclusions alone. `other_uids`:
        of erased conclusions whose rows do not exist."""
        uids = {row.uid for row in self.erased.values()} | set(other_uids)
        unvisited = uids
        while unvisited:
            citing = self._tx.conclusions.based_on(self._workspace_key, sorted(unvisited))
            unvisited = set()
            for row in citing:
                if row.key in self.erased:
                    continue
                current = self.changed.get(row.key, row)
                remaining = [uid for uid in current.source_ids or () if uid not in uids]
                if remaining:
                    self.changed[row.key] = replace(current, source_ids=remaining)
                    continue
                self.changed.pop(row.key, None)
                self.erased[row.key] = row
                unvisited.add(row.uid)
            uids |= unvisited

    def store(self, erased_uids: Iterable[str]) -> None:
        """Store the conclusions that lost a source. `erased_uids`: uids of erased messages."""
        supersession.forget_reasons(self._tx, list(self.changed.values()))
        adjust(self._tx, self._workspace_key, list(self.changed.values()), set(erased_uids))


def adjust(
    tx: Transaction, workspace_key: int, rows: Sequence[Conclusion], erased_uids: Collection[str]
) -> list[Conclusion]:
    """Store conclusions that lost sources as they follow from the remaining ones. `erased_uids`:
    uids of erased messages."""
    if not rows:
        return []
    sources = _sources_of(tx, workspace_key, rows)
    return tx.conclusions.put([_adjusted(row, sources, erased_uids) for row in rows])


def _sources_of(tx: Transaction, workspace_key: int, rows: Sequence[Conclusion]) -> _Sources:
    keys = sorted({key for row in rows for key in row.message_keys})
    messages = {position.key: position for position in tx.messages.positions(keys)}
    first = [
        max(row.message_keys) for row in rows if "message_id" in row.metadata and row.message_keys
    ]
    uids = {key: message.uid for key, message in tx.messages.by_keys(first).items()}
    named = tuple(sorted({uid for row in rows for uid in row.source_ids or ()}))
    condition = equals(workspace_key=workspace_key, uid=named)
    sources = tx.rows.page(Conclusion, condition) if named else []
    return _Sources(messages, uids, {row.uid: row for row in sources})


def _adjusted(row: Conclusion, sources: _Sources, erased_uids: Collection[str]) -> Conclusion:
    """A conclusion as it follows from its remaining sources."""
    times_of_messages = [
        at
        for key in row.message_keys
        if key in sources.messages and (at := sources.messages[key].created_at) is not None
    ]
    concluded = [
        sources.conclusions[uid] for uid in row.source_ids or () if uid in sources.conclusions
    ]
    times = times_of_messages or [source.said_at for source in concluded]
    internal = dict(row.internal)
    if row.source_ids is not None:
        # A model may have put the words of an erased source into any premise.
        name = "premises" if row.level == DEDUCTIVE else "sources"
        if name in internal:
            internal[name] = [source.content for source in concluded]
    metadata: dict[str, Any] = dict(row.metadata)
    if metadata.get("message_id") in erased_uids:
        newest = sources.uids.get(max(row.message_keys, default=0))
        metadata.pop("message_id")
        if newest is not None:
            metadata["message_id"] = newest
    return replace(
        row, said_at=max(times, default=row.said_at), internal=internal, metadata=metadata
    )
