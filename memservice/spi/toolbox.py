"""What a reasoner that works in steps may look up, and what is noted of its steps.

A reasoner reads no store: the request gives it a toolbox, which is confined beforehand to what the
asker may see.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Evidence:
    """Something that was found for a question: a conclusion or a message, best first."""

    kind: str
    """`conclusion` or `message`."""
    uid: str
    content: str
    said_at: datetime
    about: str | None = None
    """Slug of the observed peer, for a conclusion."""
    author: str | None = None
    """Slug of the author, for a message."""
    level: str | None = None
    observer: str | None = None
    """Slug of the peer that holds a conclusion."""
    session: str | None = None
    """Slug of the session that it comes from, where it comes from one."""
    source_ids: tuple[str, ...] = ()
    """Uids of the conclusions that a conclusion rests on."""
    asked_for: bool = True
    """False for a message that is only shown because it stands beside one that was found."""


Passage = Sequence[Evidence]
"""Messages of one session that follow one another, oldest first."""


@dataclass(frozen=True, slots=True)
class Chain:
    """A conclusion, what it rests on, and what rests on it."""

    conclusion: Evidence
    sources: Sequence[Evidence] = ()
    """Superseded ones among them: a conclusion does not lose its grounds."""
    consequences: Sequence[Evidence] = ()


class Toolbox(Protocol):
    """Look-ups. Each opens a short read view of its own and closes it; no call is made while a
    model is asked.

    Raises `ToolRefused`, whose text is for the reasoner to read, for what cannot be looked up.
    Anything else that it raises ends the reasoner's work.
    """

    has_chains: bool
    """False where the asker is confined to certain sessions: `chain` always refuses, since what was
    derived from several sessions carries the stamp of one."""
    has_cards: bool
    """Where it is False, `card` always refuses."""

    def conclusions(self, query: str, limit: int) -> Sequence[Evidence]:
        """The best conclusions for a query, best first."""
        ...

    def messages(
        self, query: str, limit: int, since: datetime | None = None, until: datetime | None = None
    ) -> Sequence[Passage]:
        """The best messages for a query, best first, each with the two before and after it; `since`
        and `until` are inclusive."""
        ...

    def containing(self, text: str, limit: int) -> Sequence[Passage]:
        """Messages with exactly this text, upper or lower case, newest first, each with the one
        before and after it."""
        ...

    def between(
        self, since: datetime | None, until: datetime | None, limit: int, newest_first: bool = True
    ) -> Sequence[Passage]:
        """Messages by the time at which they were sent: at most `limit` from one end of the span,
        each passage oldest first."""
        ...

    def behind(self, uid: str) -> Sequence[Passage]:
        """The messages that a conclusion was derived from, each with the one before and after
        it."""
        ...

    def chain(self, uid: str) -> Chain: ...

    def card(self, peer_id: str) -> Sequence[str]:
        """What a peer keeps about itself; empty where there is nothing."""
        ...


class ToolRefused(Exception):
    """There is no such thing, or it may not be looked at. The text says so to the reasoner, and
    what to do instead."""


@dataclass(frozen=True, slots=True)
class ToolUse:
    """One call of a tool by a model, whatever came of it."""

    name: str
    input: Mapping[str, Any]
    call_id: str | None = None
    """The provider's name for the call."""
    duration_ms: int = 0
    error: str | None = None
    """Why it gave nothing, in words that the model was told; None for one that worked."""
    result_chars: int = 0
    """Of what the model was given."""
    full_chars: int = 0
    """Of the result before it was cut."""
    results: int | None = None
    """Things found, for a look-up."""
    levels: Sequence[str] = ()
    """Of the conclusions that it made or that it let give way."""


@dataclass(frozen=True, slots=True)
class Step:
    """One exchange with a model in a loop of tool calls, and the calls that came of it."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    uses: Sequence[ToolUse] = field(default_factory=tuple)
