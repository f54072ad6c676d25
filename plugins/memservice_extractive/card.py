"""The peer card: a few verbatim lines about a peer, each with a kind."""

from __future__ import annotations

from collections.abc import Sequence

from memservice.spi.reasoner import Known
from memservice_extractive.facts import CARD_KINDS, Fact, comparable, read

MAX_LINES = 40
MAX_LINE_LENGTH = 200


def refreshed(
    card: Sequence[str], facts: Sequence[tuple[Known, Fact]], names: Sequence[str] = ()
) -> list[str] | None:
    """The card with the additions from `facts` (rows that stay, oldest first); None without a
    change.

    Existing lines stay, in their order, unless a newer value of the same slot replaces them. New
    lines follow, instructions first. A full card gets no new lines.
    """
    lines = list(dict.fromkeys(" ".join(line.split()) for line in card))
    before = list(lines)
    known_lines = {_fold(line) for line in lines} | {_fold(content_of(line)) for line in lines}
    slots: dict[int, Fact] = {
        index: fact
        for index, line in enumerate(lines)
        if (fact := read(content_of(line), names)) and fact.slot
    }
    new_lines: list[tuple[str, Fact]] = []
    for row, fact in sorted(facts, key=lambda item: item[0].said_at):
        line = f"{fact.kind}: {' '.join(row.content.split())}"
        if (
            len(line) > MAX_LINE_LENGTH
            or _fold(line) in known_lines
            or _fold(content_of(line)) in known_lines
        ):
            continue
        known_lines |= {_fold(line), _fold(content_of(line))}
        index = (
            next((index for index, other in slots.items() if fact.slot == other.slot), None)
            if fact.slot
            else None
        )
        if index is None:
            new_lines.append((line, fact))
        elif fact.slot and (
            fact.value == slots[index].value
            or comparable(fact.slot, slots[index].value, fact.value)
        ):
            if fact.value != slots[index].value:
                lines[index], slots[index] = line, fact
        else:
            new_lines.append((line, fact))
    new_lines.sort(key=lambda item: (item[1].kind != "INSTRUCTION", CARD_KINDS.index(item[1].kind)))
    lines.extend(line for line, _ in new_lines[: max(0, MAX_LINES - len(lines))])
    return lines if lines != before else None


def content_of(line: str) -> str:
    """A line without its kind."""
    kind, _, rest = line.partition(": ")
    return rest if kind in CARD_KINDS and rest else line


def _fold(line: str) -> str:
    return " ".join(line.casefold().split())
