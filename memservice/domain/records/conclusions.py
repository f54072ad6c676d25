"""What is concluded about peers, cards, and documents of callers."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct, field

from memservice.domain.records.conversations import JsonObject

EXPLICIT, DEDUCTIVE, INDUCTIVE, CONTRADICTION = (
    "explicit",
    "deductive",
    "inductive",
    "contradiction",
)

LEVELS = (EXPLICIT, DEDUCTIVE, INDUCTIVE, CONTRADICTION)

LIVE, SUPERSEDED, DELETED = "live", "superseded", "deleted"
"""States of a conclusion."""


class Collection(Struct, frozen=True):
    """The conclusions of one peer (the observer) about another (the observed), and when they were
    last consolidated."""

    workspace_key: int
    observer_key: int
    observed_key: int
    observer: str
    observed: str
    created_at: datetime
    key: int = 0
    explicit_count: int = 0
    """Live explicit conclusions."""
    explicit_at_last_dream: int = 0
    last_dream_at: datetime | None = None


class Card(Struct, frozen=True):
    """The peer card of `observer` about `target`. The target need not exist as a peer."""

    workspace_key: int
    observer_key: int
    target: str
    lines: list[str]
    updated_at: datetime
    key: int = 0
    given: list[str] = field(default_factory=list)
    """The lines that a caller wrote, a part of `lines`. The service replaces its own lines only."""


class Conclusion(Struct, frozen=True):
    uid: str
    workspace_key: int
    collection_key: int
    observer_key: int
    observed_key: int
    observer: str
    observed: str
    content: str
    fingerprint: str
    """Digest of the trimmed, case-folded content: equal fingerprints are exact duplicates."""
    said_at: datetime
    """When the newest message that it was concluded from was sent; without one, the time of the
    row. A later repetition does not change it."""
    created_at: datetime
    key: int = 0
    session_key: int | None = None
    session: str | None = None
    level: str = EXPLICIT
    state: str = LIVE
    superseded_by: int | None = None
    deleted_at: datetime | None = None
    times_derived: int = 1
    source_ids: list[str] | None = None
    """Uids of the conclusions that this one is based on; null for explicit ones."""
    message_keys: list[int] = field(default_factory=list)
    """Keys of the source messages, repetitions in the same words included."""
    internal: JsonObject = field(default_factory=dict)
    """premises, sources, pattern_type, confidence, copied_from … ; filterable as `metadata` in
    generations 2 and 3."""
    metadata: JsonObject = field(default_factory=dict)
    """Free-form metadata of a generation 1 document."""
    reasoner: str = "api"
    model: str | None = None
    superseded_at: datetime | None = None
    """When it was superseded; null while it is live, and where the time is not known."""
    restored_at: datetime | None = None
    """When it was last made live again. The spans in which it was superseded before are the
    `lapses`."""

    @property
    def lapses(self) -> list[tuple[datetime, datetime]]:
        """The spans in which it was superseded before it was restored, oldest first: the start is
        in the span, the end is not."""
        return [
            (datetime.fromisoformat(start), datetime.fromisoformat(end))
            for start, end in self.internal.get("lapses", ())
        ]

    @property
    def kind(self) -> str | None:
        """What it is about (`domain.derived_rules.STATEMENT_KINDS`), where that is known."""
        kind = self.internal.get("kind")
        return kind if isinstance(kind, str) else None

    @property
    def when(self) -> JsonObject | None:
        """The time that it is about: `start` and `end` in ISO 8601, as exact as they are known;
        None where there is none."""
        when = self.internal.get("when")
        return when if isinstance(when, dict) else None

    @property
    def certainty(self) -> str | None:
        """`hedged` or `hypothetical`; None for a plain statement."""
        certainty = self.internal.get("certainty")
        return certainty if isinstance(certainty, str) else None


class NamedCollection(Struct, frozen=True):
    """A generation 1 collection with a name of its own."""

    uid: str
    workspace_key: int
    owner_key: int
    name: str
    created_at: datetime
    key: int = 0
    metadata: JsonObject = field(default_factory=dict)


class Document(Struct, frozen=True):
    """A document of a generation 1 named collection."""

    uid: str
    workspace_key: int
    owner_key: int
    collection_key: int
    content: str
    created_at: datetime
    key: int = 0
    metadata: JsonObject = field(default_factory=dict)
