"""Writing a peer card: the service's own lines are replaced as a whole, the lines of callers are
preserved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from memservice.domain.card_rules import MAX_LINES, folded, is_good
from memservice.domain.filters import equals
from memservice.domain.records import Card, Collection
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


class CardWrite(Struct, frozen=True):
    """The result of writing a card."""

    outcome: Outcome
    change: dict[str, list[str]] | None = None
    """`before`, `given` and `after`, if the card changed (`services.dream_changes`)."""


def write(
    rt: Runtime,
    tx: Transaction,
    collection: Collection,
    expected_card: Card | None,
    proposed: Sequence[str] | None,
    rebuild: bool = False,
) -> CardWrite:
    """Write the proposed lines, unless the card is no longer the `expected_card`: that change is
    newer."""
    present = tx.cards.one(collection.observer_key, collection.observed)
    if present != expected_card:
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


def _within(chosen: Mapping[str, str], caller_lines: Mapping[str, str]) -> list[str]:
    """The chosen lines, with as many of the service's own as fit beside all lines of callers."""
    remaining = MAX_LINES - len(caller_lines)
    lines = []
    for mark, line in chosen.items():
        if mark in caller_lines or remaining > 0:
            lines.append(line)
            remaining -= mark not in caller_lines
    return lines
