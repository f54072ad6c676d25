"""Mentions of an erased peer in what others said: found, counted, and replaced by `[erased]`.

Mentions are replaced in the sessions where the peer was a member, and in the conclusions, notes and
cards of its workspace that belong to no session. Metadata, and documents of generation 1, stay.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

from memservice.domain import tokens
from memservice.domain.filters import all_of, equals
from memservice.domain.filters.ast import Compare
from memservice.domain.ids import fingerprint
from memservice.domain.records import (
    LIVE,
    Card,
    Conclusion,
    Member,
    Message,
    Metamessage,
    Peer,
    Summary,
)
from memservice.domain.text.analysis import analyse
from memservice.domain.text.mentions import Mentions
from memservice.runtime import Runtime
from memservice.services import dream_changes, indexing, peers
from memservice.services.erasure import summaries, work
from memservice.spi.rows import Order
from memservice.spi.schema import BY_RECORD
from memservice.spi.storage import Transaction

if TYPE_CHECKING:
    from memservice.spi.vectors import Vector

KEEP, REDACT = "keep", "redact"
"""What happens to mentions of a peer that is erased."""
CHOICES = (KEEP, REDACT)

RECORDS: Mapping[str, type[Any]] = {
    BY_RECORD[record].name: record for record in (Message, Summary, Conclusion, Card, Metamessage)
}
"""Where mentions are replaced, by table, in this order: work that runs again reads messages without
mentions before its results are searched."""

BATCH_SIZE = 200
"""Rows that are changed per transaction."""
PAGE_SIZE = 1_000
MAX_READ = 5_000
"""Rows that one search reads."""
MAX_COUNTED = 10_000
"""Messages, and conclusions, that a dry run reads: the newest ones."""

_GROWING = tuple(BY_RECORD[record].name for record in (Conclusion, Card))
"""Tables in which a row that was stored after the request can have something older."""
_TEXTS = ("premises", "sources", dream_changes.REASON)
"""Entries of a conclusion's `internal` that are texts."""


def newest(tx: Transaction) -> dict[str, int]:
    """The greatest key of each table: what was stored so far."""
    order = (Order("key", descending=True),)
    return {
        table: rows[0].key if (rows := tx.rows.page(record, order=order, limit=1)) else 0
        for table, record in RECORDS.items()
    }


def count(tx: Transaction, peer: Peer) -> int:
    """Number of messages and conclusions that mention a peer, among the newest `MAX_COUNTED` of
    each in its workspace."""
    names = Mentions(peers.names_of(peer))
    return sum(_count(tx, peer, record, names) for record in (Message, Conclusion))


def _count(tx: Transaction, peer: Peer, record: type[Any], names: Mentions) -> int:
    number, read, before = 0, 0, None
    order = (Order("key", descending=True),)
    while read < MAX_COUNTED:
        condition = equals(workspace_key=peer.workspace_key)
        if before is not None:
            condition = all_of(condition, Compare("key", "lt", before))
        rows = tx.rows.page(record, condition, order, PAGE_SIZE)
        number += len(_within(tx, peer, [row for row in rows if _mentions(row, names)]))
        if len(rows) < PAGE_SIZE:
            break
        read, before = read + len(rows), rows[-1].key
    return number


@dataclass(frozen=True, slots=True)
class Found:
    """The result of a search in one table."""

    rows: Sequence[Any]
    """At most `BATCH_SIZE`, by key."""
    after: int | None
    """The last key that was read; None at the end."""


def search(
    tx: Transaction,
    peer: Peer,
    table: str,
    names: Mentions,
    through: Mapping[str, int],
    after: int,
) -> Found:
    """The next rows of a table that mention a peer, of those with keys above `after`. What others
    said later than `through` (`newest`) does not count."""
    mentioning: list[Any] = []
    read = 0
    while read < MAX_READ:
        condition = all_of(equals(workspace_key=peer.workspace_key), Compare("key", "gt", after))
        rows = tx.rows.page(RECORDS[table], condition, limit=PAGE_SIZE)
        candidates = [row for row in rows if not _is_later(row, through) and _mentions(row, names)]
        mentioning += _within(tx, peer, candidates)
        if len(mentioning) > BATCH_SIZE:
            mentioning = mentioning[:BATCH_SIZE]
            return Found(mentioning, mentioning[-1].key)
        read += len(rows)
        is_end = len(rows) < PAGE_SIZE
        if is_end or (table not in _GROWING and rows[-1].key > through[table]):
            return Found(mentioning, None)
        after = rows[-1].key
    return Found(mentioning, after)


def _is_later(row: Any, through: Mapping[str, int]) -> bool:
    """Whether a row was stored after the request, and not from something older. A card is as it is
    now: it does not tell which line is older."""
    if isinstance(row, Card) or row.key <= through[BY_RECORD[type(row)].name]:
        return False
    if isinstance(row, Conclusion):
        newest_message = max(row.message_keys, default=0)
        return newest_message > through["messages"] or not (newest_message or row.source_ids)
    return True


def _within(tx: Transaction, peer: Peer, rows: Sequence[Any]) -> list[Any]:
    """The rows of sessions where the peer is or was a member, those that belong to no session, and
    none that the peer wrote or that is held about it."""
    others = [row for row in rows if not _is_of(row, peer)]
    sessions = {key for row in others if (key := getattr(row, "session_key", None)) is not None}
    own = equals(peer_key=peer.key, session_key=tuple(sorted(sessions)))
    joined = {member.session_key for member in tx.rows.page(Member, own)} if sessions else set()
    return [
        row
        for row in others
        if getattr(row, "session_key", None) is None or row.session_key in joined
    ]


def _is_of(row: Any, peer: Peer) -> bool:
    fields = ("author_key", "observer_key", "observed_key", "owner_key")
    return any(getattr(row, name, None) == peer.key for name in fields)


def _mentions(row: Any, names: Mentions) -> bool:
    return any(map(names.are_in, _texts(row)))


def _texts(row: Any) -> Iterable[str]:
    if isinstance(row, Card):
        yield from row.lines
        yield from row.given
        return
    yield row.content
    if isinstance(row, Conclusion):
        for entry in _TEXTS:
            value = row.internal.get(entry)
            yield from [value] if isinstance(value, str) else value or ()


def contents(rows: Sequence[Any], names: Mentions) -> list[str]:
    """The contents that the live conclusions among these rows will have: those with vectors."""
    return [
        names.replaced(row.content)
        for row in rows
        if isinstance(row, Conclusion) and row.state == LIVE
    ]


@dataclass(frozen=True, slots=True)
class Redacted:
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
    """Replace the mentions in these rows, at most `BATCH_SIZE`, as they are now. `vectors`: of new
    contents, if the embedder is inline."""
    if not keys:
        return NOTHING
    record = RECORDS[table]
    if record in (Message, Conclusion):
        work.interrupt_embedding(tx, workspace_key)
    rows = tx.rows.page(record, equals(key=tuple(keys)))
    rows = [row for row in rows if _mentions(row, names)]
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
    terms = [analyse(row.content) for row in rows]
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


def _conclusions(
    rt: Runtime,
    tx: Transaction,
    workspace_key: int,
    rows: Sequence[Conclusion],
    names: Mentions,
    vectors: Mapping[str, Vector],
) -> Redacted:
    work.interrupt_pairs(tx, rows)
    changed = []
    for row in rows:
        content = names.replaced(row.content)
        new = replace(
            row,
            content=content,
            fingerprint=fingerprint(content),
            internal=_internal(row, names),
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


def _internal(row: Conclusion, names: Mentions) -> dict[str, Any]:
    internal = dict(row.internal)
    for entry in _TEXTS:
        value = internal.get(entry)
        if isinstance(value, str):
            internal[entry] = names.replaced(value)
        elif isinstance(value, list):
            internal[entry] = list(map(names.replaced, value))
    return internal


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
