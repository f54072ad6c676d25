"""The peer card: a few verbatim lines about a peer, each with a kind."""

from __future__ import annotations

from collections.abc import Sequence

from memservice.spi.reasoner import Known
from memservice_extractive.facts import CARD_KINDS, IDENTITY, Fact, comparable, read
from memservice_extractive.language import detect
from memservice_extractive.subjects import topics_told

MAX_LINES = 40
MAX_LINE_LENGTH = 200
_TOPIC_OF: dict[tuple[str, ...], str] = {
    ("residence",): "home",
    ("employer",): "employer",
    ("age",): "age",
}
"""Slot → the topic of its statements."""


def refreshed(
    card: Sequence[str], facts: Sequence[tuple[Known, Fact]], names: Sequence[str] = ()
) -> list[str] | None:
    """The card with the additions from `facts` (rows that stay, oldest first); None without a
    change.

    Existing lines stay, in their order, unless a newer value of the same slot replaces them, or of
    what an introduction tells beside a name ("I'm Ada and live in Bath"). New lines follow,
    instructions first. A full card gets no new lines.
    """
    lines = list(dict.fromkeys(" ".join(line.split()) for line in card))
    before = list(lines)
    known_lines = {_fold(line) for line in lines} | {_fold(content_of(line)) for line in lines}
    slots: dict[int, Fact] = {
        index: fact
        for index, line in enumerate(lines)
        if (fact := read(content_of(line), names)) and fact.slot is not None
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
        topic = _TOPIC_OF.get(fact.slot or ())
        index = next((index for index, other in slots.items() if fact.slot == other.slot), None)
        if index is None and topic:
            new_lines = [each for each in new_lines if not _introduces_with(each[0], topic)]
            index = next(
                (at for at, each in enumerate(lines) if _introduces_with(each, topic)), None
            )
            if index is not None:
                lines[index], slots[index] = line, fact
                continue
        if fact.slot is None or index is None:
            new_lines.append((line, fact))
        elif fact.value == slots[index].value:
            continue
        elif comparable(fact.slot, slots[index].value, fact.value):
            lines[index], slots[index] = line, fact
        else:
            new_lines.append((line, fact))
    new_lines.sort(key=lambda item: (item[1].kind != "INSTRUCTION", CARD_KINDS.index(item[1].kind)))
    lines.extend(line for line, _ in new_lines[: max(0, MAX_LINES - len(lines))])
    return lines if lines != before else None


def _introduces_with(line: str, topic: str) -> bool:
    """Whether a line is an introduction that tells of the topic as well."""
    kind, _, content = line.partition(": ")
    if kind != IDENTITY or ((fact := read(content)) and fact.slot is not None):
        return False
    return bool(topics_told(content, detect(content), frozenset({topic})))


def content_of(line: str) -> str:
    """A line without its kind."""
    kind, _, rest = line.partition(": ")
    return rest if kind in CARD_KINDS and rest else line


def _fold(line: str) -> str:
    return " ".join(line.casefold().split())
