"""Peers, and what is known about them."""

from __future__ import annotations

from typing import Any, ClassVar

from marshmallow import post_load, pre_load

from memservice.api.fields import (
    Flag,
    FromPath,
    ListOf,
    Name,
    Part,
    Seconds,
    Text,
    Whole,
)
from memservice.api.schema import Shape
from memservice.api.v2.schemas.base import (
    Listing,
    Older,
)
from memservice.api.v3.schemas import (
    chat,
    peers,
    queries,
)
from memservice.api.v3.schemas.messages import Message
from memservice.api.v3.schemas.sessions import Summary
from memservice.api.validators import (
    Length,
    OneOf,
    Range,
)
from memservice.domain.filters import resources
from memservice.domain.sizes import MAX_QUERY

NEWEST_WORDS = {"include_most_derived": "include_most_frequent", "max_observations": "max_conclusions"}
MOST = 50
"""Observations in a context, where nothing is said."""


class PeerGet(Listing):
    RESOURCE = resources.PEER
    UNSAID: ClassVar[dict[str, Any]] = {"kind": None}


class _Observation(Shape):
    created_at = Seconds(required=True, metadata={"format": "date-time"})
    message_ids = ListOf(Whole(), required=True)
    session_name = Text(attribute="session", required=True)


class ExplicitObservation(_Observation):
    content = Text(required=True)


class DeductiveObservation(_Observation):
    premises = ListOf(Text())
    conclusion = Text(attribute="content", required=True)


class Representation(Shape):
    """What was said, and what follows from it; each oldest first."""

    explicit = ListOf(Part(ExplicitObservation))
    deductive = ListOf(Part(DeductiveObservation))


class PeerRepresentationGet(Older, peers.PeerRepresentationGet):
    ALIASES: ClassVar[dict[str, str]] = NEWEST_WORDS
    UNSAID: ClassVar[dict[str, Any]] = {"filters": None, "scope": None}

    include_most_frequent = Flag(data_key="include_most_derived", allow_none=True, load_default=None)
    max_conclusions = Whole(data_key="max_observations", allow_none=True, load_default=25, validate=Range(1, 100))

    class Meta(Older.Meta):
        exclude = ("filters", "scope")


class RepresentationResponse(Shape):
    """Its parts stand beside it as well: there the client 1.6.0 looks for what a peer of a session is known by."""

    representation = Part(Representation, required=True)
    explicit = ListOf(Part(ExplicitObservation), attribute="representation.explicit")
    deductive = ListOf(Part(DeductiveObservation), attribute="representation.deductive")


class PeerContextQuery(Older, queries.PeerContextQuery):
    ALIASES: ClassVar[dict[str, str]] = NEWEST_WORDS

    include_most_frequent = Flag(data_key="include_most_derived", load_default=True)
    max_conclusions = Whole(data_key="max_observations", allow_none=True, load_default=MOST, validate=Range(1, 100))


class PeerContext(Shape):
    peer_id = Text(attribute="peer", required=True)
    target_id = Text(attribute="target", required=True)
    representation = Part(Representation, allow_none=True)
    peer_card = ListOf(Text(), attribute="card", allow_none=True)


class SessionContextQuery(Older, queries.SessionContextQuery):
    ALIASES: ClassVar[dict[str, str]] = {**NEWEST_WORDS, "last_message": "search_query"}
    UNSAID: ClassVar[dict[str, Any]] = {"scope": None, "sessions": None}

    search_query = Text(data_key="last_message", allow_none=True, load_default=None, validate=Length(max=MAX_QUERY))
    include_most_frequent = Flag(data_key="include_most_derived", load_default=False)
    max_conclusions = Whole(data_key="max_observations", allow_none=True, load_default=MOST, validate=Range(1, 100))

    class Meta(Older.Meta):
        exclude = ("scope", "sessions")


class SessionContext(Shape):
    id = FromPath("session_id", required=True)
    messages = ListOf(Part(Message), required=True)
    summary = Part(Summary, allow_none=True)
    peer_representation = Part(Representation, attribute="representation", allow_none=True)
    peer_card = ListOf(Text(), attribute="card", allow_none=True)


class EarlySessionContext(Shape):
    """As the first clients know it: the text of a summary alone."""

    id = FromPath("session_id", required=True)
    messages = ListOf(Part(Message), required=True)
    summary = Text(required=True)


class DialecticOptions(Older, chat.DialecticOptions):
    """The first clients ask `queries`: one text, or several for one answer."""

    UNSAID: ClassVar[dict[str, Any]] = {"scope": None, "filters": None, "response_format": None}

    class Meta(Older.Meta):
        exclude = ("scope", "filters", "response_format", "include_evidence")

    @pre_load
    def _read_queries(self, data: Any, **kwargs: Any) -> Any:
        if not isinstance(data, dict) or "query" in data or "queries" not in data:
            return data
        asked = data["queries"]
        several = isinstance(asked, list) and all(isinstance(query, str) for query in asked)
        return {**data, "query": "\n".join(asked) if several else asked}

    @post_load(pass_original=True)
    def _note_early(self, data: dict[str, Any], original: Any, **kwargs: Any) -> dict[str, Any]:
        return {**data, "early": "query" not in original}


class ChatResponse(Shape):
    content = Text(required=True)


class TriggerDreamRequest(Shape):
    observer = Name(required=True)
    observed = Name(allow_none=True, load_default=None)
    dream_type = Text(required=True, validate=OneOf("consolidate", "agent"))
