"""The look-ups of a reasoner that works in steps, and the record of its steps.

A reasoner does not read the store. Its request has a toolbox, which is limited in advance to what
the caller may see.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from msgspec import Struct, field


class Evidence(Struct, frozen=True):
    """A result for a question: a conclusion or a message."""

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
    """Slug of the observer, for a conclusion."""
    session: str | None = None
    """Slug of its session, if it comes from one session."""
    source_ids: tuple[str, ...] = ()
    """Uids of the conclusions that a conclusion is based on."""
    replaced: Sequence[Evidence] = ()
    """Conclusions that a conclusion replaced, newest first; without their own."""
    asked_for: bool = True
    """False for a message that is included only as a neighbour of a result."""
    when: tuple[str | None, str | None] | None = None
    """The time that a conclusion is about: start and end in ISO 8601, as exact as they are known;
    None for an open end. None: not known."""


Passage = Sequence[Evidence]
"""Successive messages of one session, oldest first."""


class Chain(Struct, frozen=True):
    """A conclusion, its sources, and the conclusions based on it."""

    conclusion: Evidence
    sources: Sequence[Evidence] = ()
    """They include superseded conclusions, which remain sources."""
    consequences: Sequence[Evidence] = ()


class Toolbox(Protocol):
    """Look-ups. Each one uses a short read transaction of its own; no transaction is open during a
    call of a model.

    A look-up that is not possible raises `ToolRefused`, whose text is for the reasoner. Any other
    exception ends the reasoner's work.
    """

    has_chains: bool
    """False if the caller is limited to certain sessions: `chain` then always refuses, because a
    conclusion derived from several sessions has the stamp of one."""
    has_cards: bool
    """If False, `card` always refuses."""

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
        """Messages that contain this text, ignoring case, newest first, each with the one before
        and after it."""
        ...

    def between(
        self, since: datetime | None, until: datetime | None, limit: int, newest_first: bool = True
    ) -> Sequence[Passage]:
        """Messages by the time they were sent: at most `limit`, from one end of the period; each
        passage oldest first."""
        ...

    def behind(self, uid: str) -> Sequence[Passage]:
        """The source messages of a conclusion, each with the one before and after it."""
        ...

    def around(self, uid: str) -> Sequence[Passage]:
        """A message with the five before and after it."""
        ...

    def chain(self, uid: str) -> Chain: ...

    def card(self, peer_id: str) -> Sequence[str]:
        """The card of a peer about itself; empty if there is none."""
        ...


class ToolRefused(Exception):
    """The object does not exist or is not visible. The text explains this to the reasoner, and what
    to do instead."""


class ToolUse(Struct, frozen=True):
    """One call of a tool by a model, successful or not."""

    name: str
    input: Mapping[str, Any]
    call_id: str | None = None
    """The provider's id of the call."""
    duration_ms: int = 0
    error: str | None = None
    """The error text that the model received; None for a call that succeeded."""
    result_chars: int = 0
    """Characters of the result that the model received."""
    full_chars: int = 0
    """Characters of the result before it was cut."""
    results: int | None = None
    """Number of results of a look-up."""
    levels: Sequence[str] = ()
    """Levels of the conclusions that it created or superseded."""


class Step(Struct, frozen=True):
    """One exchange with a model in a tool loop, and the tool calls in its answer."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    uses: Sequence[ToolUse] = field(default_factory=tuple)
