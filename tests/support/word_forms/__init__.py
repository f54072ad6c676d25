"""Messages in ten languages, and queries with other forms of their words.

Each file is one conversation. A line is `message => query`, where the message is the answer, or
`= message`, which answers nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

LANGUAGES = ("ar", "de", "en", "es", "fr", "it", "ja", "pt", "ru", "zh")


@dataclass(frozen=True)
class Table:
    messages: list[str]
    cases: list[tuple[str, str]]
    """Query, and the message that answers it."""


def table(language: str) -> Table:
    messages: list[str] = []
    cases: list[tuple[str, str]] = []
    path = Path(__file__).with_name(f"{language}.txt")
    for line in path.read_text(encoding="utf-8").splitlines():
        message, _, query = line.removeprefix("= ").partition(" => ")
        messages.append(message)
        if query:
            cases.append((query, message))
    return Table(messages, cases)
