"""What every question set becomes: turns in sessions, and questions whose evidence is known."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Turn:
    """One message. `key` is unique in its conversation and rises with time; `seq` counts from 1 in
    its session."""

    key: int
    session: int
    seq: int
    speaker: str
    at: datetime
    text: str


@dataclass(frozen=True, slots=True)
class Question:
    """A question, and the keys of all turns that its answer rests on (never empty)."""

    text: str
    evidence: frozenset[int]
    category: str


@dataclass(frozen=True, slots=True)
class Conversation:
    """One workspace's worth: a question is asked of its own conversation only."""

    name: str
    speakers: tuple[str, ...]
    turns: tuple[Turn, ...]
    questions: tuple[Question, ...]
    language: str = "en"
    skipped: int = field(default=0)
    """Questions of the source that have no evidence in it, and so cannot be scored."""
