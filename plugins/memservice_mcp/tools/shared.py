"""Arguments and results that several tools have."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated

from pydantic import Field, PlainSerializer

from memservice.domain.errors import InvalidInput
from memservice.domain.records import Conclusion, Message
from memservice.domain.times import parse_iso, wire
from memservice_mcp.tool import Result

MAX_ITEM = 4_000
"""Characters of one text in a result."""
MAX_TEXT = 24_000
"""Characters of a representation in a result."""

About = Annotated[
    str | None,
    Field(
        min_length=1,
        description="Id of the peer (person or agent) that this is about. Default: the user.",
    ),
]
SessionId = Annotated[
    str | None, Field(min_length=1, description="Id of a session. Default: none in particular.")
]
AsOf = Annotated[
    str | None,
    Field(
        min_length=1,
        description="Only what was known at this time in the past: a date, such as 2026-03-03, or "
        "a time with a zone. Default: now.",
    ),
]
Time = Annotated[datetime, PlainSerializer(wire, return_type=str)]
"""ISO 8601 in UTC."""


class ConclusionItem(Result):
    """A stored statement about a peer."""

    id: str
    content: str
    level: str = Field(description="How it is known: explicit, deductive, inductive …")
    about: str
    session: str | None
    said_at: Time


class MessageItem(Result):
    """A message, word for word."""

    id: str
    content: str
    peer: str = Field(description="The author's id.")
    session: str
    created_at: Time


def conclusions_of(rows: Iterable[Conclusion]) -> list[ConclusionItem]:
    return [
        ConclusionItem(
            id=row.uid,
            content=shortened(row.content),
            level=row.level,
            about=row.observed,
            session=row.session,
            said_at=row.said_at,
        )
        for row in rows
    ]


def messages_of(rows: Iterable[Message]) -> list[MessageItem]:
    return [
        MessageItem(
            id=row.uid,
            content=shortened(row.content),
            peer=row.author,
            session=row.session,
            created_at=row.created_at,
        )
        for row in rows
    ]


def shortened(text: str, length: int = MAX_ITEM) -> str:
    """At most so many characters, and a note of what is missing."""
    if len(text) <= length:
        return text
    return f"{text[:length]}… [{len(text) - length} more characters]"


def parsed_time(argument: str, text: str | None) -> datetime | None:
    """The time in an argument. Raises `InvalidInput`."""
    if text is None:
        return None
    try:
        return parse_iso(text)
    except ValueError as error:
        message = f"{error}: write 2026-05-31 or 2026-05-31T18:00Z"
        raise InvalidInput.at(argument, message=message) from error
