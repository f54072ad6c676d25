"""Mentions of an erased peer in what others said: found and counted; `redaction` replaces them.

Mentions are replaced in the sessions where the peer was a member, and in the conclusions, notes and
cards of its workspace that belong to no session. Metadata, and documents of generation 1, stay.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from memservice.domain.filters import all_of, equals
from memservice.domain.filters.ast import Compare, Condition
from memservice.domain.records import (
    Card,
    Conclusion,
    Member,
    Message,
    Metamessage,
    Peer,
    Summary,
    Task,
)
from memservice.domain.text.mentions import Mentions
from memservice.services import peers, supersession
from memservice.services.erasure import dream_texts
from memservice.services.tasks import kinds
from memservice.spi.rows import Order
from memservice.spi.schema import BY_RECORD
from memservice.spi.storage import Transaction

if TYPE_CHECKING:
    pass

KEEP, REDACT = "keep", "redact"
"""What happens to mentions of a peer that is erased."""
CHOICES = (KEEP, REDACT)

RECORDS: Mapping[str, type[Any]] = {
    BY_RECORD[record].name: record
    for record in (Message, Summary, Conclusion, Card, Metamessage, Task)
}
"""Where mentions are replaced, by table, in this order: work that runs again reads messages without
mentions before its results are searched. Of tasks, only those of dreams."""

BATCH_SIZE = 200
"""Rows that are changed per transaction."""
PAGE_SIZE = 1_000
MAX_READ = 5_000
"""Rows that one search reads."""
MAX_COUNTED = 10_000
"""Messages, and conclusions, that a dry run reads: the newest ones."""

_GROWING = tuple(BY_RECORD[record].name for record in (Conclusion, Card, Task))
"""Tables in which a row that was stored after the request can have something older."""
_TEXTS = ("premises", "sources", supersession.REASON)
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
        number += len(_within(tx, peer, [row for row in rows if are_in(row, names)]))
        if len(rows) < PAGE_SIZE:
            break
        read, before = read + len(rows), rows[-1].key
    return number


class Found(Struct, frozen=True):
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
        condition = all_of(_in_workspace(peer, table), Compare("key", "gt", after))
        rows = tx.rows.page(RECORDS[table], condition, limit=PAGE_SIZE)
        candidates = [row for row in rows if not _is_later(row, through) and are_in(row, names)]
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


def _in_workspace(peer: Peer, table: str) -> Condition:
    condition = equals(workspace_key=peer.workspace_key)
    is_tasks = RECORDS[table] is Task
    return all_of(condition, equals(kind=kinds.DREAM)) if is_tasks else condition


def _is_later(row: Any, through: Mapping[str, int]) -> bool:
    """Whether a row was stored after the request, and not from something older. A card, and what a
    dream says of one, does not tell which line is older."""
    if isinstance(row, Card | Task) or row.key <= through[BY_RECORD[type(row)].name]:
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


def are_in(row: Any, names: Mentions) -> bool:
    """Whether a text of a row mentions one of the names."""
    return any(map(names.are_in, _texts(row)))


def replaced_in(internal: Mapping[str, Any], names: Mentions) -> dict[str, Any]:
    """A conclusion's `internal` without mentions."""
    without = dict(internal)
    for entry in _TEXTS:
        value = without.get(entry)
        if isinstance(value, str):
            without[entry] = names.replaced(value)
        elif isinstance(value, list):
            without[entry] = list(map(names.replaced, value))
    return without


def _texts(row: Any) -> Iterable[str]:
    if isinstance(row, Card):
        yield from row.lines
        yield from row.given
        return
    if isinstance(row, Task):
        yield from dream_texts.texts(row.payload)
        return
    yield row.content
    if isinstance(row, Conclusion):
        for entry in _TEXTS:
            value = row.internal.get(entry)
            yield from [value] if isinstance(value, str) else value or ()
