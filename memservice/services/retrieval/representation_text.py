"""Text of a representation: Markdown for callers, plain text for token budgets and for agents."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct, field

from memservice.domain.records import (
    CONTRADICTION,
    DEDUCTIVE,
    EXPLICIT,
    INDUCTIVE,
    Conclusion,
    Message,
)
from memservice.domain.times import stamp

MAX_SOURCES = 5


class Selection(Struct, frozen=True):
    """The conclusions and messages of a representation, in no particular order."""

    conclusions: Sequence[Conclusion] = ()
    messages: Sequence[Message] = ()
    speakers: dict[str, str] = field(default_factory=dict)
    """Slug → displayed name, for the authors of `messages`."""

    def level(self, level: str) -> list[Conclusion]:
        """Conclusions of one level, oldest first."""
        chosen = [conclusion for conclusion in self.conclusions if conclusion.level == level]
        return sorted(chosen, key=lambda conclusion: (conclusion.said_at, conclusion.key))

    def speaker(self, message: Message) -> str:
        """The displayed name of the message's author."""
        return self.speakers.get(message.author, message.author)

    def explicit_lines(self) -> list[str]:
        """Explicit conclusions and verbatim messages, oldest first."""
        lines = [(item.said_at, 0, item.key, _explicit(item)) for item in self.level(EXPLICIT)]
        lines += [
            (item.created_at, 1, item.key, line_of_message(item, self.speaker(item)))
            for item in self.messages
        ]
        return [text for _, _, _, text in sorted(lines)]


def line_of_message(item: Message, speaker: str) -> str:
    """A quoted message, as it stands in the text."""
    return f"[{stamp(item.created_at)}] {speaker}: {item.content}"


def line_of_conclusion(item: Conclusion) -> str:
    """A conclusion of any level, as it stands in the Markdown text."""
    by_level = {DEDUCTIVE: _deductive, INDUCTIVE: _inductive, CONTRADICTION: _contradiction}
    return by_level.get(item.level, _explicit)(item)


def _explicit(item: Conclusion) -> str:
    """The text, with a mark if the peer was not sure of it."""
    mark = f" ({item.certainty})" if item.certainty else ""
    return f"[{stamp(item.said_at)}] {item.content}{mark}"


def support(conclusion: Conclusion) -> list[str]:
    """The support of a conclusion, as texts: its premises, or its sources."""
    return _strings(conclusion, "premises") or _strings(conclusion, "sources")


def _strings(conclusion: Conclusion, name: str) -> list[str]:
    values = conclusion.internal.get(name)
    return [item for item in values if isinstance(item, str)] if isinstance(values, list) else []


def markdown(selection: Selection) -> str:
    """Markdown with the sections that are not empty; empty if all are."""
    sections = []
    explicit = selection.explicit_lines()
    if explicit:
        sections.append("## Explicit Observations\n\n" + "\n".join(explicit) + "\n")
    deductive = selection.level(DEDUCTIVE)
    if deductive:
        sections.append(
            "## Deductive Observations\n\n" + "".join(_deductive(item) for item in deductive)
        )
    inductive = selection.level(INDUCTIVE)
    if inductive:
        sections.append(
            "## Inductive Observations\n\n" + "\n".join(_inductive(item) for item in inductive)
        )
    contradictions = selection.level(CONTRADICTION)
    if contradictions:
        sections.append(
            "## Contradictions\n\n" + "\n".join(_contradiction(item) for item in contradictions)
        )
    return "\n".join(sections)


def _deductive(item: Conclusion) -> str:
    text = f"[{stamp(item.said_at)}] {item.content}\n"
    premises = _strings(item, "premises")
    if premises:
        text += "   Premises:\n" + "".join(f"   - {premise}\n" for premise in premises)
    return text + "\n"


def _inductive(item: Conclusion) -> str:
    confidence = item.internal.get("confidence") or "medium"
    text = f" **Pattern** [{confidence}]: {item.content}\n"
    if item.internal.get("pattern_type"):
        text += f"   **Type**: {item.internal['pattern_type']}\n"
    sources = _strings(item, "sources")
    if sources:
        text += "   **Sources**:\n" + "".join(
            f"   - {source}\n" for source in sources[:MAX_SOURCES]
        )
        if len(sources) > MAX_SOURCES:
            text += f"   - ... and {len(sources) - MAX_SOURCES} more\n"
    return text


def _contradiction(item: Conclusion) -> str:
    text = f" **CONTRADICTION**: {item.content}\n"
    sources = _strings(item, "sources")
    if sources:
        text += "   **Conflicting statements**:\n" + "".join(
            f"   - {source}\n" for source in sources
        )
    return text


def plain(selection: Selection) -> str:
    """Plain text with all four headings, even of empty sections; their tokens count against a
    budget."""
    parts = [_numbered_list("EXPLICIT:", [(line, []) for line in selection.explicit_lines()])]
    for heading, level, support in (
        ("DEDUCTIVE:", DEDUCTIVE, "premises"),
        ("INDUCTIVE:", INDUCTIVE, "sources"),
        ("CONTRADICTION:", CONTRADICTION, "sources"),
    ):
        parts.append(
            _numbered_list(
                heading,
                [
                    (f"[{stamp(item.said_at)}] {item.content}", _strings(item, support))
                    for item in selection.level(level)
                ],
            )
        )
    return "\n".join(parts)


def _numbered_list(heading: str, items: Sequence[tuple[str, list[str]]]) -> str:
    lines = [heading, ""]
    for number, (text, support) in enumerate(items, 1):
        lines.append(f"{number}. {text}")
        lines.extend(f"    - {line}" for line in support)
    return "\n".join([*lines, ""])
