"""What a history consists of."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from msgspec import Struct, field


class Utterance(Struct, frozen=True):
    """A message of a conversation. Those of one session follow each other in the order of the
    conversation; other sessions may come between."""

    session: str
    """The id of the conversation in the file."""
    peer: str
    """The id or name of the author in the file."""
    id: str
    """Unique within the session."""
    content: str
    at: datetime | None = None
    title: str | None = None
    """The title of the conversation."""
    is_assistant: bool = False
    """Nothing is derived from what assistants say, unless their peer exists with other settings."""
    metadata: Mapping[str, Any] = field(default_factory=dict)


class Statement(Struct, frozen=True):
    """A memory about a peer."""

    peer: str
    id: str
    """Unique within the file."""
    content: str
    at: datetime | None = None
    session: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


class Outdated(Struct, frozen=True):
    """A memory that its system marked as no longer true. It is counted, not stored."""


Item = Utterance | Statement | Outdated
