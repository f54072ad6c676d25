"""What every question set becomes: turns in sessions, and questions whose evidence is known."""

from __future__ import annotations

from dataclasses import dataclass
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
    """A question, and the keys of all turns that its answer rests on."""

    text: str
    evidence: frozenset[int]
    """Empty only for a question that nothing in the conversation answers."""
    category: str
    answer: str = ""
    """The gold answer; empty if the source has none. Of several values, one a line."""
    asker: str = ""
    """The speaker that the question is about, if the source says so."""


@dataclass(frozen=True, slots=True)
class Fact:
    """Something that a speaker states about itself: what a deriver should conclude."""

    key: int
    """Of the turn that states it."""
    about: str
    value: str
    """A word or phrase that a conclusion holding the fact contains."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """The content of one workspace: a question refers to its own conversation only."""

    name: str
    speakers: tuple[str, ...]
    turns: tuple[Turn, ...]
    questions: tuple[Question, ...]
    language: str = "en"
    kind: str = "people"
    """`people`: talking to each other in short messages; `assistant`: a user and an assistant."""
    skipped: int = 0
    """Questions of the source that have no evidence in it, and so cannot be scored."""
    unanswerable: tuple[Question, ...] = ()
    """Questions that nothing in the conversation answers: the right answer says so."""
    facts: tuple[Fact, ...] = ()
