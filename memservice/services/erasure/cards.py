"""Cards of pairs whose conclusions are erased."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from msgspec.structs import replace

from memservice.domain.card_rules import folded
from memservice.domain.filters import equals
from memservice.domain.ids import fingerprint
from memservice.domain.records import LIVE, Card, Collection, Conclusion
from memservice.runtime import Runtime
from memservice.services import dreams
from memservice.spi.storage import Transaction


def remove_lines(rt: Runtime, tx: Transaction, erased: Sequence[Conclusion]) -> None:
    """Remove the service's own lines that quote no remaining conclusion: a line does not name its
    sources. If one of them was in other words than the erased conclusions, a dream rebuilds the
    card. Call it after the conclusions are erased."""
    marks: dict[int, set[str]] = {}
    for row in erased:
        marks.setdefault(row.collection_key, set()).add(row.fingerprint)
    for collection in _collections(tx, marks):
        _remove_lines(rt, tx, collection, marks[collection.key])


def remove_unquoted(rt: Runtime, tx: Transaction, collection_keys: Iterable[int]) -> None:
    """The same for the cards of these pairs, whose conclusions were erased before."""
    for collection in _collections(tx, collection_keys):
        _remove_lines(rt, tx, collection, set())


def are_left(tx: Transaction, collection_keys: Iterable[int], before: datetime) -> bool:
    """Whether a card of these pairs that was last written before a time has lines that
    `remove_unquoted` removes."""
    for collection in _collections(tx, collection_keys):
        card = _card(tx, collection)
        if card is None or card.updated_at >= before:
            continue
        if unquoted(tx, collection.key, card.lines, card.given):
            return True
    return False


def _collections(tx: Transaction, keys: Iterable[int]) -> list[Collection]:
    requested = tuple(sorted(keys))
    return tx.rows.page(Collection, equals(key=requested)) if requested else []


def _card(tx: Transaction, collection: Collection) -> Card | None:
    """The card of a pair; None if its observed peer is erased: the card is of a new one with its
    id."""
    card = tx.cards.one(collection.observer_key, collection.observed)
    observed = tx.peers.by_keys([collection.observed_key]).get(collection.observed_key)
    return None if observed is None or observed.slug != collection.observed else card


def _remove_lines(rt: Runtime, tx: Transaction, collection: Collection, marks: set[str]) -> None:
    card = _card(tx, collection)
    removed = unquoted(tx, collection.key, card.lines, card.given) if card is not None else set()
    if card is None or not removed:
        return
    lines = [line for line in card.lines if line not in removed]
    tx.rows.delete(Card, equals(key=card.key))
    if lines:
        tx.cards.save(replace(card, key=0, lines=lines, updated_at=rt.clock()))
    peers = tx.peers.by_keys([collection.observer_key, collection.observed_key])
    in_other_words = any(not marks & _marks(line) for line in removed)
    if in_other_words and collection.observer_key in peers:
        dreams.enqueue(
            rt,
            tx,
            peers[collection.observer_key],
            peers[collection.observed_key],
            dreams.CARD_REFRESH,
            rebuild=True,
            trigger=dreams.ERASURE,
        )


def unquoted(
    tx: Transaction, collection_key: int, lines: Sequence[str], given: Sequence[str]
) -> set[str]:
    """The lines of a card, without those that a caller gave, that quote no live conclusion."""
    callers = {folded(line) for line in given}
    own = [line for line in lines if folded(line) not in callers]
    quoted = _quoted(tx, collection_key, own)
    return {line for line in own if not quoted & _marks(line)}


def _marks(line: str) -> set[str]:
    """Fingerprints of the conclusions that a line can quote."""
    return {fingerprint(line), fingerprint(line.partition(": ")[2])}


def _quoted(tx: Transaction, collection_key: int, lines: Sequence[str]) -> set[str]:
    """Fingerprints of the live conclusions that these lines quote."""
    marks = tuple(sorted({mark for line in lines for mark in _marks(line)}))
    condition = equals(collection_key=collection_key, state=LIVE, fingerprint=marks)
    return {row.fingerprint for row in tx.rows.page(Conclusion, condition)} if marks else set()
