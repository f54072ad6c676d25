"""The common form of all question sets: turns in sessions, and questions with their evidence."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

TUNING, HELD_BACK = "tuning", "held-back"
"""The splits of generated sets. Constants are chosen on the first one only."""


class Turn(Struct, frozen=True):
    """One message. `key` is unique in its conversation and rises with time; `seq` counts from 1 in
    its session."""

    key: int
    session: int
    seq: int
    speaker: str
    at: datetime
    text: str


class Question(Struct, frozen=True):
    """A question, and the keys of all turns that its answer is based on."""

    text: str
    evidence: frozenset[int]
    """Empty only for a question that nothing in the conversation answers."""
    category: str
    answer: str = ""
    """The gold answer; empty if the source has none. Several values are on one line each."""
    asker: str = ""
    """The speaker that the question is about, if the source says so."""


class Fact(Struct, frozen=True):
    """A statement of a speaker about itself, which a deriver should conclude."""

    key: int
    """Of the turn that states it."""
    about: str
    value: str
    """A word or phrase by which a conclusion with this fact is recognized."""


class Inference(Struct, frozen=True):
    """A conclusion that a model may draw."""

    text: str
    about: str
    level: str
    sources: tuple[int, ...] = ()
    """Keys of the turns that an explicit one comes from."""
    premises: tuple[int, ...] = ()
    """Positions, in the list of them, of the explicit ones that another one rests on."""


class Conversation(Struct, frozen=True):
    """The content of one workspace: a question refers to its own conversation only."""

    name: str
    speakers: tuple[str, ...]
    turns: tuple[Turn, ...]
    questions: tuple[Question, ...]
    language: str = "en"
    kind: str = "people"
    """`people`: talking to each other in short messages; `assistant`: a user and an assistant."""
    skipped: int = 0
    """Number of questions of the source without evidence, which cannot be scored."""
    unanswerable: tuple[Question, ...] = ()
    """Questions that the conversation does not answer. The right answer states this."""
    facts: tuple[Fact, ...] = ()
    inferences: tuple[Inference, ...] = ()
    """The explicit ones first."""
