"""Consolidation without a model: merges duplicates, replaces plain facts by newer ones, and updates
the card.

It creates and destroys nothing, and does not change uncertain cases.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from memservice.spi.reasoner import Consolidated, ConsolidateRequest, Known, Superseded
from memservice_extractive.card import refreshed
from memservice_extractive.duplicates import merges
from memservice_extractive.facts import Fact, comparable, read

EXPLICIT = "explicit"


def consolidate(request: ConsolidateRequest) -> Consolidated:
    """Each superseded row refers to a row that stays. Rows of other levels do not change."""
    explicit = [row for row in request.known if row.level == EXPLICIT]
    names = (request.observed,)
    replaced: dict[str, tuple[Known, str]] = {}
    for old, new, reason in merges(explicit):
        replaced[old.uid] = (new, reason)
    live = [row for row in explicit if row.uid not in replaced]
    facts = {row.uid: fact for row in live if (fact := read(row.content, names))}
    for old, new, slot in _outdated(live, facts):
        replaced[old.uid] = (new, f"updated: {' '.join(slot)}")
    superseded = [
        Superseded(row.uid, _last(replaced, row.uid), replaced[row.uid][1])
        for row in explicit
        if row.uid in replaced
    ]
    card = None
    if request.write_card:
        card = refreshed(
            request.card,
            [(row, facts[row.uid]) for row in live if row.uid in facts and row.uid not in replaced],
            names,
        )
    return Consolidated(superseded=superseded, card=card)


def _outdated(
    live: Sequence[Known], facts: dict[str, Fact]
) -> list[tuple[Known, Known, tuple[str, ...]]]:
    """(old, new, slot) for each statement with a later one of the same plain form and another
    value. The latest statement replaces all earlier ones."""
    by_slot: dict[tuple[str, ...], list[Known]] = defaultdict(list)
    for row in live:
        fact = facts.get(row.uid)
        if fact and fact.slot:
            by_slot[fact.slot].append(row)
    outdated = []
    for slot, rows in by_slot.items():
        ordered = sorted(rows, key=lambda row: row.said_at)
        for index, old in enumerate(ordered):
            for new in reversed(ordered[index + 1 :]):
                if new.said_at > old.said_at and comparable(
                    slot, facts[old.uid].value, facts[new.uid].value
                ):
                    outdated.append((old, new, slot))
                    break
    return outdated


def _last(replaced: dict[str, tuple[Known, str]], uid: str) -> str:
    # Each step leads to a row that is not earlier and was chosen to stay, so this ends.
    while uid in replaced:
        uid = replaced[uid][0].uid
    return uid
