"""Conclusions."""

from __future__ import annotations

from typing import ClassVar

from memservice.api.fields import DateTime, Float, Integer, JsonObject, List, Name, Nested, String
from memservice.api.schema import AliasedSchema, BaseSchema
from memservice.api.validators import Length, OneOf, Range
from memservice.domain.derived_rules import STATEMENT_KINDS
from memservice.domain.records import LEVELS, LIVE, SUPERSEDED
from memservice.domain.sizes import MAX_CONCLUSION, MAX_QUERY


class ConclusionCreate(BaseSchema):
    content = String(required=True, validate=Length(1, MAX_CONCLUSION))
    observer_id = Name(required=True)
    observed_id = Name(required=True)
    session_id = Name(allow_none=True, load_default=None)


class ConclusionBatchCreate(AliasedSchema):
    ALIASES: ClassVar[dict[str, str]] = {"conclusions": "observations"}

    conclusions = List(Nested(ConclusionCreate), required=True, validate=Length(1, 100))


class ConclusionQuery(BaseSchema):
    query = String(required=True, validate=Length(max=MAX_QUERY))
    top_k = Integer(load_default=10, validate=Range(1, 100))
    distance = Float(allow_none=True, load_default=None, validate=Range(0, 1))
    filters = JsonObject(allow_none=True, load_default=None)


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


class ListedConclusion(Conclusion):
    state = String(
        required=True,
        validate=OneOf(LIVE, SUPERSEDED),
        metadata={"description": "`superseded` only with `include=superseded`"},
    )
