"""Cards of pairs whose conclusions are erased."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from memservice.domain.card_rules import folded
from memservice.domain.filters import equals
from memservice.domain.ids import fingerprint
from memservice.domain.records import LIVE, Card, Conclusion
from memservice.runtime import Runtime
from memservice.services import dreams
from memservice.spi.storage import Transaction


def remove_lines(rt: Runtime, tx: Transaction, erased: Sequence[Conclusion]) -> None:
    """Remove the service's own lines that quote no remaining conclusion: a line does not name its
    sources. If one of them was in other words than the erased conclusions, a dream rebuilds the
    card. Call it after the conclusions are erased."""
    pairs: dict[int, list[Conclusion]] = {}
    for row in erased:
        pairs.setdefault(row.collection_key, []).append(row)
    for collection_key, rows in pairs.items():
        observer_key, observed_key = rows[0].observer_key, rows[0].observed_key
        card = tx.cards.one(observer_key, rows[0].observed)
        if card is None:
            continue
        peers = tx.peers.by_keys([observer_key, observed_key])
        if observed_key not in peers or peers[observed_key].slug != rows[0].observed:
            continue  # the observed peer is erased: the card is of a new one with its id
        removed = unquoted(tx, collection_key, card.lines, card.given)
        if not removed:
            continue
        lines = [line for line in card.lines if line not in removed]
        tx.rows.delete(Card, equals(key=card.key))
        if lines:
            tx.cards.save(replace(card, key=0, lines=lines, updated_at=rt.clock()))
        erased_marks = {row.fingerprint for row in rows}
        in_other_words = any(not erased_marks & _marks(line) for line in removed)
        if in_other_words and observer_key in peers:
            dreams.enqueue(
                rt,
                tx,
                peers[observer_key],
                peers[observed_key],
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
