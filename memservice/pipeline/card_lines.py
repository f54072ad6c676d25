"""Writing a peer card: the service's own lines are replaced as a whole, the lines of callers are
preserved."""

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
    """The lines in the input of a reasoner: all or, to rebuild the card, only the lines of
    callers."""
    if card is None:
        return []
    return list(card.given if rebuild else card.lines)


def rewritten(
    card: Card | None, proposed: Sequence[str] | None, rebuild: bool
) -> tuple[list[str] | None, int]:
    """The new lines of the card (None: unchanged), and the number of proposed lines with an invalid
    form.

    Callers' lines are never removed: one that is not proposed follows the one before it. Without a
    valid proposed line the card is unchanged; in a rebuild it then has only callers' lines, since
    the conclusions behind the other lines may no longer exist.
    """
    caller_lines = {folded(line): line for line in (card.given if card else ())}
    chosen: dict[str, str] = {}
    dropped = 0
    for line in proposed or ():
        text = " ".join(strip_nul(line).split())
        mark = folded(text)
        if mark in caller_lines:
            chosen.setdefault(mark, caller_lines[mark])
        elif is_good(text):
            chosen.setdefault(mark, text)
        else:
            dropped += 1
    before = list(card.lines) if card else []
    if not any(mark not in caller_lines for mark in chosen) and not rebuild:
        return None, dropped
    lines = _within(chosen, caller_lines)
    after = 0
    for mark, line in caller_lines.items():
        if mark not in chosen:
            lines.insert(after, line)
        after = lines.index(line) + 1
    return (None if lines == before else lines), dropped


@dataclass(frozen=True, slots=True)
class CardWrite:
    """The result of writing a card."""

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
    """Write the proposed lines, unless the card changed since it was `read`: that change is
    newer."""
    present = tx.cards.one(collection.observer_key, collection.observed)
    if present != read:
        return CardWrite({"card": "changed in the meantime"})
    lines, dropped = rewritten(present, proposed, rebuild)
    outcome: Outcome = {"card_lines_dropped": dropped} if dropped else {}
    if lines is None:
        return CardWrite(outcome)
    caller_lines = list(present.given) if present else []
    if not lines and present is not None:
        tx.rows.delete(Card, equals(key=present.key))
    elif lines:
        card = Card(
            workspace_key=collection.workspace_key,
            observer_key=collection.observer_key,
            target=collection.observed,
            lines=lines,
            given=caller_lines,
            updated_at=rt.clock(),
        )
        tx.cards.save(card)
    before = list(present.lines) if present else []
    return CardWrite(
        {"card_lines": len(lines)} | outcome,
        {"before": before, "given": caller_lines, "after": list(lines)},
    )


def remove_quoted(rt: Runtime, tx: Transaction, erased: Sequence[Conclusion]) -> None:
    """Remove the service's own lines that quote conclusions being erased with their session, unless
    a conclusion of another session says the same. Lines in other words remain until the next
    rebuild."""
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
        quotes = {
            line: quoted[text]
            for line in card.lines
            if folded(line) in own and (text := folded(line.partition(": ")[2])) in quoted
        }
        same = equals(
            collection_key=collection_key, state=LIVE, fingerprint=tuple(set(quotes.values()))
        )
        keys = {row.key for row in rows}
        still_stored = {
            row.fingerprint
            for row in (tx.rows.page(Conclusion, same) if quotes else ())
            if row.key not in keys and row.session_key != rows[0].session_key
        }
        lines = [line for line in card.lines if line not in quotes or quotes[line] in still_stored]
        if lines == list(card.lines):
            continue
        tx.rows.delete(Card, equals(key=card.key))
        if lines:
            tx.cards.save(replace(card, key=0, lines=lines, updated_at=rt.clock()))


def _within(chosen: Mapping[str, str], caller_lines: Mapping[str, str]) -> list[str]:
    """The chosen lines, with as many of the service's own as fit beside all lines of callers."""
    remaining = MAX_LINES - len(caller_lines)
    lines = []
    for mark, line in chosen.items():
        if mark in caller_lines or remaining > 0:
            lines.append(line)
            remaining -= mark not in caller_lines
    return lines
