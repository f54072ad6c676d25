"""Replacement of the mentions of an erased peer by `[erased]`, in rows that `mentions` found, with
what follows from their texts: tokens, fingerprints, indexes and summaries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from memservice.domain import tokens
from memservice.domain.filters import equals
from memservice.domain.ids import fingerprint
from memservice.domain.records import LIVE, Card, Conclusion, Message, Summary, Task
from memservice.domain.text.mentions import Mentions
from memservice.runtime import Runtime
from memservice.services import dream_changes, indexing
from memservice.services.erasure import dream_texts, mentions, summaries, work
from memservice.spi.storage import Transaction

if TYPE_CHECKING:
    from memservice.spi.vectors import Vector


def contents(rows: Sequence[Any], names: Mentions) -> list[str]:
    """The contents that the live conclusions among these rows will have: those with vectors."""
    return [
        names.replaced(row.content)
        for row in rows
        if isinstance(row, Conclusion) and row.state == LIVE
    ]


class Redacted(Struct, frozen=True):
    """What one transaction changed."""

    keys: Mapping[str, list[int]]
    """Keys of the changed rows, by their kind in the indexes: an index outside the storage has
    their old vectors still, and no task embeds them again yet."""
    sessions: Mapping[str, Any]
    """By key of a session as text: the first position with other sums of tokens, and the removed
    summaries (`positions.repack`, `summaries.make_again`)."""
    number: int
    """Changed messages and conclusions."""


NOTHING = Redacted({}, {}, 0)


def redact(
    rt: Runtime,
    tx: Transaction,
    workspace_key: int,
    table: str,
    keys: Sequence[int],
    names: Mentions,
    vectors: Mapping[str, Vector],
) -> Redacted:
    """Replace the mentions in these rows, at most `mentions.BATCH_SIZE`, as they are now.
    `vectors`: of new contents, if the embedder is inline."""
    if not keys:
        return NOTHING
    record = mentions.RECORDS[table]
    if record in (Message, Conclusion) and rt.vectors_transactional:
        work.interrupt_embedding(tx, workspace_key)
    if record is Task:
        return _dreams(tx, keys, names)
    rows = tx.rows.page(record, equals(key=tuple(keys)))
    rows = [row for row in rows if mentions.are_in(row, names)]
    if record is Message:
        return _messages(rt, tx, workspace_key, rows, names)
    if record is Conclusion:
        return _conclusions(rt, tx, workspace_key, rows, names, vectors)
    for row in rows:
        if record is Summary:
            _summary(rt, tx, row)
        elif record is Card:
            lines, given = (list(map(names.replaced, part)) for part in (row.lines, row.given))
            tx.rows.change(Card, equals(key=row.key), lines=lines, given=given)
        else:
            tx.rows.change(record, equals(key=row.key), content=names.replaced(row.content))
    return NOTHING


def _messages(
    rt: Runtime, tx: Transaction, workspace_key: int, rows: Sequence[Message], names: Mentions
) -> Redacted:
    changed: list[Message] = []
    sessions: dict[str, Any] = {}
    by_session = sorted(rows, key=lambda row: (row.session_key, row.seq))
    for key, group in groupby(by_session, key=lambda row: row.session_key):
        unlocked = tx.sessions.by_key(key)
        if unlocked is not None:
            work.interrupt_session(tx, unlocked)
        session = tx.sessions.by_key(key, lock=True)
        if session is None:
            continue
        # Positions as they are under the lock.
        current = list(tx.messages.by_keys([row.key for row in group]).values())
        if not current:
            continue
        first = min(row.seq for row in current)
        sessions[str(key)] = {"first": first, "covered": summaries.remove(tx, session, current)}
        changed += [_message(tx, row, names) for row in current]
        tx.messages.revise(key)
    _index_messages(rt, tx, workspace_key, changed)
    return Redacted({indexing.MESSAGE: [row.key for row in changed]}, sessions, len(changed))


def _message(tx: Transaction, row: Message, names: Mentions) -> Message:
    content = names.replaced(row.content)
    changed = replace(row, content=content, tokens=tokens.count(content))
    tx.rows.change(Message, equals(key=row.key), content=content, tokens=changed.tokens)
    return changed


def _index_messages(
    rt: Runtime, tx: Transaction, workspace_key: int, rows: Sequence[Message]
) -> None:
    authors = tx.peers.by_keys(sorted({row.author_key for row in rows}))
    keys = [row.key for row in rows]
    indexing.remove_from_storage(rt, tx, indexing.MESSAGE, workspace_key, keys)
    terms = [indexing.message_terms(row.content) for row in rows]
    indexing.add_message_texts(rt, tx, workspace_key, rows, terms, authors)
    if rt.vectors_transactional:
        tx.tasks.add(indexing.message_vectors_later(rt, tx, workspace_key, rows))


def _summary(rt: Runtime, tx: Transaction, row: Summary) -> None:
    """Remove a summary, and have it made again."""
    session = tx.sessions.by_key(row.session_key, lock=True)
    tx.rows.delete(Summary, equals(key=row.key))
    if session is not None:
        last = {position.seq for position in tx.messages.positions([row.message_key])}
        covered = {row.kind: max(last, default=session.message_count)}
        summaries.make_again(rt, tx, session, covered)


def _dreams(tx: Transaction, keys: Sequence[int], names: Mentions) -> Redacted:
    """Replace the mentions in what dreams propose or changed. A dream in progress about the same
    pair, which has read the old texts, starts again."""
    work.interrupt_pairs(tx, tx.rows.page(Task, equals(key=tuple(keys))))
    for task in tx.locked(Task, keys):
        payload = dream_texts.changed(task.payload, names.replaced)
        tx.rows.change(Task, equals(key=task.key), payload=payload)
    return NOTHING


def _conclusions(
    rt: Runtime,
    tx: Transaction,
    workspace_key: int,
    rows: Sequence[Conclusion],
    names: Mentions,
    vectors: Mapping[str, Vector],
) -> Redacted:
    work.interrupt_pairs(tx, rows)
    tx.conclusions.lock_collections(row.collection_key for row in rows)
    changed = []
    for row in rows:
        content = names.replaced(row.content)
        new = replace(
            row,
            content=content,
            fingerprint=fingerprint(content),
            internal=mentions.replaced_in(row.internal, names),
        )
        values = {name: getattr(new, name) for name in ("content", "fingerprint", "internal")}
        tx.rows.change(Conclusion, equals(key=row.key), **values)
        changed.append(new)
    dream_changes.discard_citing(tx, changed)
    live = [row for row in changed if row.state == LIVE]
    keys = [row.key for row in live]
    indexing.remove_from_storage(rt, tx, indexing.CONCLUSION, workspace_key, keys)
    if not rt.vectors_transactional:
        indexing.add_conclusion_texts(rt, tx, workspace_key, live)
    else:
        of_live = [vectors[row.content] for row in live if row.content in vectors]
        complete = of_live if len(of_live) == len(live) else None
        tx.tasks.add(indexing.index_conclusions(rt, tx, workspace_key, live, complete))
    return Redacted({indexing.CONCLUSION: keys}, {}, len(changed))


def embed_again(
    rt: Runtime, tx: Transaction, workspace_key: int, keys: Mapping[str, Sequence[int]]
) -> None:
    """Add the tasks that embed changed rows, whose old vectors are no longer in the index outside
    the storage."""
    messages = list(tx.messages.by_keys(keys.get(indexing.MESSAGE, ())).values())
    if messages:
        tx.tasks.add(indexing.message_vectors_later(rt, tx, workspace_key, messages))
    if conclusions := keys.get(indexing.CONCLUSION, ()):
        tx.tasks.add(
            indexing.embed_later(rt, indexing.CONCLUSION, workspace_key, list(conclusions))
        )
