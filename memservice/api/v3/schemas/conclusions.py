"""Conclusions."""

from __future__ import annotations

from typing import ClassVar

from memservice.api.fields import (
    Boolean,
    DateTime,
    Float,
    Integer,
    JsonObject,
    List,
    Name,
    Nested,
    String,
)
from memservice.api.schema import AliasedSchema, BaseSchema
from memservice.api.v3.schemas.messages import EXPLAIN_OPTION
from memservice.api.v3.schemas.queries import AsOf
from memservice.api.validators import Length, OneOf, Range
from memservice.domain.derived_rules import STATEMENT_KINDS
from memservice.domain.records import LEVELS, LIVE, SUPERSEDED
from memservice.domain.sizes import MAX_CONCLUSION, MAX_QUERY
from memservice.services.corrections import MAX_REASON
from memservice.services.history import MAKERS, MAX_VERSIONS


class ConclusionCreate(BaseSchema):
    content = String(required=True, validate=Length(1, MAX_CONCLUSION))
    observer_id = Name(required=True)
    observed_id = Name(required=True)
    session_id = Name(allow_none=True, load_default=None)


class ConclusionBatchCreate(AliasedSchema):
    ALIASES: ClassVar[dict[str, str]] = {"conclusions": "observations"}

    conclusions = List(Nested(ConclusionCreate), required=True, validate=Length(1, 100))


class ConclusionQuery(AsOf):
    query = String(required=True, validate=Length(max=MAX_QUERY))
    top_k = Integer(load_default=10, validate=Range(1, 100))
    distance = Float(allow_none=True, load_default=None, validate=Range(0, 1))
    filters = JsonObject(allow_none=True, load_default=None)
    explain = Boolean(load_default=False, metadata={"description": EXPLAIN_OPTION})


class Conclusion(BaseSchema):
    id = String(attribute="uid", required=True)
    content = String(required=True)
    observer_id = String(attribute="observer", required=True)
    observed_id = String(attribute="observed", required=True)
    session_id = String(attribute="session", allow_none=True)
    level = String(required=True, validate=OneOf(*LEVELS))
    source_ids = List(String(), allow_none=True)
    times_derived = Integer(required=True, metadata={"minimum": 1})
    created_at = DateTime(required=True)
    kind = String(
        allow_none=True,
        metadata={"description": f"One of {', '.join(STATEMENT_KINDS)}, if known"},
    )
    when = JsonObject(
        allow_none=True,
        metadata={"description": "The time that it is about: `start` and `end` in ISO 8601"},
    )
    certainty = String(
        allow_none=True,
        metadata={"description": "`hedged` or `hypothetical`; null for a plain statement"},
    )
    said_at = DateTime(
        required=True,
        metadata={
            "description": "When its newest source message was sent; without one, `created_at`"
        },
    )


class ListedConclusion(Conclusion):
    state = String(
        required=True,
        validate=OneOf(LIVE, SUPERSEDED),
        metadata={
            "description": "The state now; `superseded` only with `include=superseded` or `as_of`"
        },
    )
    superseded_at = DateTime(
        allow_none=True,
        metadata={"description": "Null while it is live, and if the time is not known"},
    )
    superseded_by = String(
        attribute="successor",
        allow_none=True,
        metadata={"description": "The id of the conclusion that replaced it, if there is one"},
    )


class SourcedConclusion(ListedConclusion):
    message_ids = List(
        String(),
        attribute="messages",
        allow_none=True,
        metadata={"description": "With `include_messages`: the source messages that exist"},
    )


class Lapse(BaseSchema):
    """A span in which a conclusion was superseded, before it was restored."""

    superseded_at = DateTime(required=True)
    restored_at = DateTime(required=True)


class ConclusionVersion(ListedConclusion):
    """One version in the history of a conclusion."""

    reason = String(allow_none=True, metadata={"description": "Why it was superseded"})
    made_by = String(required=True, validate=OneOf(*MAKERS))
    reasoner = String(required=True, metadata={"description": "`api` for a caller"})
    model = String(allow_none=True)
    message_ids = List(
        String(),
        attribute="messages",
        required=True,
        metadata={"description": "The source messages that exist"},
    )
    lapses = List(
        Nested(Lapse),
        attribute="past_lapses",
        required=True,
        metadata={"description": "When it was superseded before it was restored"},
    )


class ConclusionHistory(BaseSchema):
    """The versions of a conclusion, oldest first."""

    versions = List(Nested(ConclusionVersion), required=True)
    complete = Boolean(
        required=True, metadata={"description": f"False if there are more than {MAX_VERSIONS}"}
    )


class ConclusionCorrection(BaseSchema):
    content = String(required=True, validate=Length(1, MAX_CONCLUSION))


class ConclusionInvalidation(BaseSchema):
    reason = String(allow_none=True, load_default=None, validate=Length(max=MAX_REASON))
