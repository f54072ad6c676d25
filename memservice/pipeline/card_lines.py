"""Writing a peer card: the service's own lines are replaced as a whole, those that a caller wrote
stay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from memservice.domain.card_rules import MAX_LINES, folded, is_good
from memservice.domain.filters import equals
from memservice.domain.records import EXPLICIT, LIVE, Card, Collection, Conclusion
from memservice.domain.values import strip_nul
from memservice.pipeline.handler import Outcome
from memservice.runtime import Runtime
from memservice.spi.storage import Transaction


def visible(card: Card | None, rebuild: bool) -> list[str]:
    """The lines that a reasoner starts from: all of them or, to write the card anew, those of
    callers."""
    if card is None:
        return []
    return list(card.given if rebuild else card.lines)


def rewritten(
    card: Card | None, proposed: Sequence[str] | None, rebuild: bool
) -> tuple[list[str] | None, int]:
    """The lines that the card is to have (None: as it is), and how many of the proposed ones were
    dropped for their form.

    Callers' lines never go: one that is not proposed keeps its place after the one before it.
    Nothing proposed, or nothing of use, leaves the card; one that is rebuilt then keeps callers'
    lines only, since what its other lines rested on may be gone.
    """
    given = {folded(line): line for line in (card.given if card else ())}
    chosen: dict[str, str] = {}
    dropped = 0
    for line in proposed or ():
        text = " ".join(strip_nul(line).split())
        mark = folded(text)
        if mark in given:
            chosen.setdefault(mark, given[mark])
        elif is_good(text):
            chosen.setdefault(mark, text)
        else:
            dropped += 1
    before = list(card.lines) if card else []
    if not any(mark not in given for mark in chosen) and not rebuild:
        return None, dropped
    lines = _within(chosen, given)
    after = 0
    for mark, line in given.items():
        if mark not in chosen:
            lines.insert(after, line)
        after = lines.index(line) + 1
    return (None if lines == before else lines), dropped


@dataclass(frozen=True, slots=True)
class CardWrite:
    """What became of a card."""

    outcome: Outcome
    change: dict[str, list[str]] | None = None
    """`before`, `given` and `after`, if the card changed (`services.dream_changes`)."""


def write(
    rt: Runtime,
    tx: Transaction,
    collection: Collection,
    read: Card | None,
    proposed: Sequence[str] | None,
    rebuild: bool = False,
) -> CardWrite:
    """Write the proposed lines, unless the card is no longer as it was `read`: what was written
    since is newer."""
    present = tx.cards.one(collection.observer_key, collection.observed)
    if present != read:
        return CardWrite({"card": "changed in the meantime"})
    lines, dropped = rewritten(present, proposed, rebuild)
    outcome: Outcome = {"card_lines_dropped": dropped} if dropped else {}
    if lines is None:
        return CardWrite(outcome)
    given = list(present.given) if present else []
    if not lines and present is not None:
        tx.rows.delete(Card, equals(key=present.key))
    elif lines:
        card = Card(
            workspace_key=collection.workspace_key,
            observer_key=collection.observer_key,
            target=collection.observed,
            lines=lines,
            given=given,
            updated_at=rt.clock(),
        )
        tx.cards.save(card)
    before = list(present.lines) if present else []
    return CardWrite(
        {"card_lines": len(lines)} | outcome,
        {"before": before, "given": given, "after": list(lines)},
    )


def remove_quoted(rt: Runtime, tx: Transaction, erased: Sequence[Conclusion]) -> None:
    """Remove the service's own lines that quote conclusions which are being erased with their
    session, unless the same is held from elsewhere. Lines in other words stay until the card is
    written anew."""
    by_pair: dict[tuple[int, int, str], list[Conclusion]] = {}
    for row in erased:
        if row.level == EXPLICIT:
            pair = (row.collection_key, row.observer_key, row.observed)
            by_pair.setdefault(pair, []).append(row)
    for (collection_key, observer_key, observed), rows in by_pair.items():
        card = tx.cards.one(observer_key, observed)
        if card is None:
            continue
        quoted = {folded(row.content): row.fingerprint for row in rows}
        own = {folded(line) for line in card.lines} - {folded(line) for line in card.given}
        found = {
            line: quoted[text]
            for line in card.lines
            if folded(line) in own and (text := folded(line.partition(": ")[2])) in quoted
        }
        same = equals(
            collection_key=collection_key, state=LIVE, fingerprint=tuple(set(found.values()))
        )
        keys = {row.key for row in rows}
        held = {
            row.fingerprint
            for row in (tx.rows.page(Conclusion, same) if found else ())
            if row.key not in keys and row.session_key != rows[0].session_key
        }
        lines = [line for line in card.lines if line not in found or found[line] in held]
        if lines == list(card.lines):
            continue
        tx.rows.delete(Card, equals(key=card.key))
        if lines:
            tx.cards.save(replace(card, key=0, lines=lines, updated_at=rt.clock()))


def _within(chosen: Mapping[str, str], given: Mapping[str, str]) -> list[str]:
    """The chosen lines, of the service's own only as many as fit beside all lines of callers."""
    remaining = MAX_LINES - len(given)
    lines = []
    for mark, line in chosen.items():
        if mark in given or remaining > 0:
            lines.append(line)
            remaining -= mark not in given
    return lines
