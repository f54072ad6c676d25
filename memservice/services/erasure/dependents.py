"""Conclusions about others that the erasure of a peer erases too: those that rest on its messages,
or on conclusions by or about it, alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

from memservice.domain.filters import Condition, all_of, equals
from memservice.domain.filters.ast import Compare
from memservice.domain.records import Conclusion, Message, Peer
from memservice.spi.rows import Order
from memservice.spi.storage import Transaction

Row = TypeVar("Row", Message, Conclusion)

BATCH_SIZE = 500
MAX_READ = 10_000
"""Messages of the peer, and its conclusions, that are followed: the newest ones."""
_NEWEST_FIRST = (Order("key", descending=True),)


def count(tx: Transaction, peer: Peer, of_pairs: Condition) -> int:
    """Number of these conclusions. `of_pairs`: the conclusions by and about the peer, which are not
    counted."""
    dependents = _Dependents(tx, peer)
    for messages in _newest(tx, Message, equals(author_key=peer.key)):
        dependents.of_messages(messages)
    for conclusions in _newest(tx, Conclusion, of_pairs):
        dependents.follow({row.uid for row in conclusions})
    return len(dependents.keys)


def _newest(tx: Transaction, record: type[Row], condition: Condition) -> Iterator[list[Row]]:
    before = condition
    for _ in range(MAX_READ // BATCH_SIZE):
        rows = tx.rows.page(record, before, _NEWEST_FIRST, BATCH_SIZE)
        yield rows
        if len(rows) < BATCH_SIZE:
            return
        before = all_of(condition, Compare("key", "lt", rows[-1].key))


class _Dependents:
    def __init__(self, tx: Transaction, peer: Peer) -> None:
        self._tx = tx
        self._peer = peer
        self._uids: set[str] = set()
        """Of erased messages and conclusions."""
        self.keys: set[int] = set()

    def of_messages(self, messages: Sequence[Message]) -> None:
        """Add the conclusions whose sources are messages of the peer, and what rests on them."""
        rows = self._tx.conclusions.of_messages(
            self._peer.workspace_key, [message.key for message in messages]
        )
        others = [row for row in rows if not (self._is_own(row) or row.source_ids)]
        keys = sorted({key for row in others for key in row.message_keys})
        positions = self._tx.messages.positions(keys, times=False)
        remaining = {each.key for each in positions if each.author_key != self._peer.key}
        erased = [row for row in others if remaining.isdisjoint(row.message_keys)]
        self.keys.update(row.key for row in erased)
        self.follow({row.uid for row in erased} | {message.uid for message in messages})

    def follow(self, uids: set[str]) -> None:
        """Add what was concluded only from erased rows, among them these."""
        while uids:
            self._uids |= uids
            following: set[str] = set()
            for row in self._based_on(sorted(uids)):
                is_erased = self._uids.issuperset(row.source_ids or ())
                if is_erased and not self._is_own(row) and row.key not in self.keys:
                    self.keys.add(row.key)
                    following.add(row.uid)
            uids = following

    def _based_on(self, uids: Sequence[str]) -> Iterator[Conclusion]:
        for start in range(0, len(uids), BATCH_SIZE):
            batch = uids[start : start + BATCH_SIZE]
            yield from self._tx.conclusions.based_on(self._peer.workspace_key, batch)

    def _is_own(self, row: Conclusion) -> bool:
        return self._peer.key in (row.observer_key, row.observed_key)
