"""The peer card: few lines on who a peer is, verbatim, each under a kind."""

from __future__ import annotations

from collections.abc import Sequence

from memservice.spi.reasoner import Known
from memservice_extractive.facts import CARD_KINDS, Fact, comparable, read

MAX_LINES = 40
MAX_LINE_LENGTH = 200


def refreshed(
    card: Sequence[str], facts: Sequence[tuple[Known, Fact]], names: Sequence[str] = ()
) -> list[str] | None:
    """The card with what `facts` (rows that stay, oldest first) add to it; None when that is
    nothing.

    Lines that are there stay, in their order, unless a newer value of the same slot replaces them;
    new ones follow, instructions first. A full card takes no more.
    """
    lines = list(dict.fromkeys(" ".join(line.split()) for line in card))
    before = list(lines)
    held = {_fold(line) for line in lines} | {_fold(_content(line)) for line in lines}
    slots: dict[int, Fact] = {
        index: fact
        for index, line in enumerate(lines)
        if (fact := read(_content(line), names)) and fact.slot
    }
    added: list[tuple[str, Fact]] = []
    for row, fact in sorted(facts, key=lambda item: item[0].said_at):
        line = f"{fact.kind}: {' '.join(row.content.split())}"
        if len(line) > MAX_LINE_LENGTH or _fold(line) in held or _fold(_content(line)) in held:
            continue
        held |= {_fold(line), _fold(_content(line))}
        index = (
            next((index for index, other in slots.items() if fact.slot == other.slot), None)
            if fact.slot
            else None
        )
        if index is None:
            added.append((line, fact))
        elif fact.slot and (
            fact.value == slots[index].value
            or comparable(fact.slot, slots[index].value, fact.value)
        ):
            if fact.value != slots[index].value:
                lines[index], slots[index] = line, fact
        else:
            added.append((line, fact))
    added.sort(key=lambda item: (item[1].kind != "INSTRUCTION", CARD_KINDS.index(item[1].kind)))
    lines.extend(line for line, _ in added[: max(0, MAX_LINES - len(lines))])
    return lines if lines != before else None


def _content(line: str) -> str:
    kind, _, rest = line.partition(": ")
    return rest if kind in CARD_KINDS and rest else line


def _fold(line: str) -> str:
    return " ".join(line.casefold().split())
