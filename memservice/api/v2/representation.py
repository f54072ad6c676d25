"""Representations in this generation: observations instead of text."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from memservice.api.v2.schemas.base import GLOBAL_SESSION
from memservice.domain.records import EXPLICIT, LEVELS, Conclusion, Message, Summary
from memservice.services.retrieval.context import PeerContext, SessionContext
from memservice.services.retrieval.representation_text import Selection, support


class Observation(Struct, frozen=True):
    created_at: datetime
    message_ids: list[int]
    session: str
    content: str
    premises: list[str]


class Representation(Struct, frozen=True):
    explicit: list[Observation]
    deductive: list[Observation]
    """All other levels: also patterns and contradictions, for which this generation has no
    lists."""


def representation_of(selection: Selection) -> Representation:
    """The representation of a selection, each list oldest first. Quoted messages are in
    `explicit`."""
    explicit = [_of_conclusion(conclusion) for conclusion in selection.level(EXPLICIT)]
    quoted = [_of_message(message, selection.speaker(message)) for message in selection.messages]
    deductive = [
        _of_conclusion(conclusion)
        for level in LEVELS
        if level != EXPLICIT
        for conclusion in selection.level(level)
    ]
    return Representation(_in_time([*explicit, *quoted]), _in_time(deductive))


def _in_time(observations: list[Observation]) -> list[Observation]:
    return sorted(observations, key=lambda observation: observation.created_at)


def _of_conclusion(conclusion: Conclusion) -> Observation:
    session_id = conclusion.session or GLOBAL_SESSION
    return Observation(
        conclusion.said_at,
        list(conclusion.message_keys),
        session_id,
        conclusion.content,
        support(conclusion),
    )


def _of_message(message: Message, speaker: str) -> Observation:
    return Observation(
        message.created_at, [message.key], message.session, f"{speaker}: {message.content}", []
    )


class OfPeerAlone(Struct, frozen=True):
    representation: Representation


class OfPeer(Struct, frozen=True):
    peer: str
    target: str
    representation: Representation
    card: list[str] | None


class OfSession(Struct, frozen=True):
    messages: Sequence[Message]
    summary: Summary | None
    representation: Representation | None
    card: list[str] | None


class Early(Struct, frozen=True):
    messages: Sequence[Message]
    summary: str


def of_peer(context: PeerContext) -> OfPeer:
    return OfPeer(context.peer, context.target, representation_of(context.selection), context.card)


def of_session(context: SessionContext) -> OfSession:
    representation = None if context.selection is None else representation_of(context.selection)
    return OfSession(context.messages, context.summary, representation, context.card)


def early(context: SessionContext) -> Early:
    return Early(context.messages, "" if context.summary is None else context.summary.content)


def in_session(conclusion: Conclusion) -> Conclusion:
    """The conclusion with a session id, even if it belongs to none."""
    return (
        conclusion
        if conclusion.session is not None
        else replace(conclusion, session=GLOBAL_SESSION)
    )
