"""Peers, representations and contexts."""

from __future__ import annotations

from typing import Any, ClassVar

from marshmallow import post_load, pre_load

from memservice.api.fields import Boolean, FromPath, Integer, List, Name, Nested, Seconds, String
from memservice.api.schema import BaseSchema
from memservice.api.v2.schemas.base import LegacySchema, Listing
from memservice.api.v3.schemas import chat, peers, queries
from memservice.api.v3.schemas.messages import Message
from memservice.api.v3.schemas.sessions import Summary
from memservice.api.validators import Length, OneOf, Range
from memservice.domain.filters import resources
from memservice.domain.sizes import MAX_QUERY

NEWEST_WORDS = {
    "include_most_derived": "include_most_frequent",
    "max_observations": "max_conclusions",
}
MAX_CONCLUSIONS = 50
"""Default number of observations in a context."""


class PeerGet(Listing):
    RESOURCE = resources.PEER
    DEFAULTS: ClassVar[dict[str, Any]] = {"kind": None}


class _Observation(BaseSchema):
    created_at = Seconds(required=True, metadata={"format": "date-time"})
    message_ids = List(Integer(), required=True)
    session_name = String(attribute="session", required=True)


class ExplicitObservation(_Observation):
    content = String(required=True)


class DeductiveObservation(_Observation):
    premises = List(String())
    conclusion = String(attribute="content", required=True)


class Representation(BaseSchema):
    """Explicit and deductive observations, each oldest first."""

    explicit = List(Nested(ExplicitObservation))
    deductive = List(Nested(DeductiveObservation))


class PeerRepresentationGet(LegacySchema, peers.PeerRepresentationGet):
    ALIASES: ClassVar[dict[str, str]] = NEWEST_WORDS
    DEFAULTS: ClassVar[dict[str, Any]] = {"filters": None, "scope": None, "as_of": None}

    include_most_frequent = Boolean(
        data_key="include_most_derived", allow_none=True, load_default=None
    )
    max_conclusions = Integer(
        data_key="max_observations", allow_none=True, load_default=25, validate=Range(1, 100)
    )

    class Meta(LegacySchema.Meta):
        exclude = ("filters", "scope", "as_of")


class RepresentationResponse(BaseSchema):
    """The representation, and its two lists again at the top level, where client 1.6.0 reads them
    for a peer in a session."""

    representation = Nested(Representation, required=True)
    explicit = List(Nested(ExplicitObservation), attribute="representation.explicit")
    deductive = List(Nested(DeductiveObservation), attribute="representation.deductive")


class PeerContextQuery(LegacySchema, queries.PeerContextQuery):
    ALIASES: ClassVar[dict[str, str]] = NEWEST_WORDS
    DEFAULTS: ClassVar[dict[str, Any]] = {"as_of": None}

    include_most_frequent = Boolean(data_key="include_most_derived", load_default=True)
    max_conclusions = Integer(
        data_key="max_observations",
        allow_none=True,
        load_default=MAX_CONCLUSIONS,
        validate=Range(1, 100),
    )

    class Meta(LegacySchema.Meta):
        exclude = ("as_of",)


class PeerContext(BaseSchema):
    peer_id = String(attribute="peer", required=True)
    target_id = String(attribute="target", required=True)
    representation = Nested(Representation, allow_none=True)
    peer_card = List(String(), attribute="card", allow_none=True)


class SessionContextQuery(LegacySchema, queries.SessionContextQuery):
    ALIASES: ClassVar[dict[str, str]] = {**NEWEST_WORDS, "last_message": "search_query"}
    DEFAULTS: ClassVar[dict[str, Any]] = {"scope": None, "sessions": None, "as_of": None}

    search_query = String(
        data_key="last_message", allow_none=True, load_default=None, validate=Length(max=MAX_QUERY)
    )
    include_most_frequent = Boolean(data_key="include_most_derived", load_default=False)
    max_conclusions = Integer(
        data_key="max_observations",
        allow_none=True,
        load_default=MAX_CONCLUSIONS,
        validate=Range(1, 100),
    )

    class Meta(LegacySchema.Meta):
        exclude = ("scope", "sessions", "as_of")


class SessionContext(BaseSchema):
    id = FromPath("session_id", required=True)
    messages = List(Nested(Message), required=True)
    summary = Nested(Summary, allow_none=True)
    peer_representation = Nested(Representation, attribute="representation", allow_none=True)
    peer_card = List(String(), attribute="card", allow_none=True)


class EarlySessionContext(BaseSchema):
    """For the first clients: only the text of a summary."""

    id = FromPath("session_id", required=True)
    messages = List(Nested(Message), required=True)
    summary = String(required=True)


class DialecticOptions(LegacySchema, chat.DialecticOptions):
    """The first clients send `queries`: one text, or several for one answer."""

    DEFAULTS: ClassVar[dict[str, Any]] = {
        "scope": None,
        "filters": None,
        "response_format": None,
        "as_of": None,
    }

    class Meta(LegacySchema.Meta):
        exclude = ("scope", "filters", "response_format", "include_evidence", "as_of")

    @pre_load
    def _read_queries(self, data: Any, **kwargs: Any) -> Any:
        if not isinstance(data, dict) or "query" in data or "queries" not in data:
            return data
        queries = data["queries"]
        several = isinstance(queries, list) and all(isinstance(query, str) for query in queries)
        return {**data, "query": "\n".join(queries) if several else queries}

    @post_load(pass_original=True)
    def _note_early(self, data: dict[str, Any], original: Any, **kwargs: Any) -> dict[str, Any]:
        return {**data, "early": "query" not in original}


class ChatResponse(BaseSchema):
    content = String(required=True)


class TriggerDreamRequest(BaseSchema):
    observer = Name(required=True)
    observed = Name(allow_none=True, load_default=None)
    dream_type = String(required=True, validate=OneOf("consolidate", "agent"))
