"""Conclusions."""

from __future__ import annotations

from typing import ClassVar

from memservice.api.fields import (
    ListOf,
    Moment,
    Name,
    Number,
    Object,
    Part,
    Text,
    Whole,
)
from memservice.api.schema import (
    Aliased,
    Shape,
)
from memservice.api.validators import (
    Length,
    OneOf,
    Range,
)
from memservice.domain.records import LEVELS
from memservice.domain.sizes import MAX_QUERY


class ConclusionCreate(Shape):
    content = Text(required=True, validate=Length(1, 65_535))
    observer_id = Name(required=True)
    observed_id = Name(required=True)
    session_id = Name(allow_none=True, load_default=None)


class ConclusionBatchCreate(Aliased):
    ALIASES: ClassVar[dict[str, str]] = {"conclusions": "observations"}

    conclusions = ListOf(Part(ConclusionCreate), required=True, validate=Length(1, 100))


class ConclusionQuery(Shape):
    query = Text(required=True, validate=Length(max=MAX_QUERY))
    top_k = Whole(load_default=10, validate=Range(1, 100))
    distance = Number(allow_none=True, load_default=None, validate=Range(0, 1))
    filters = Object(allow_none=True, load_default=None)


class Conclusion(Shape):
    id = Text(attribute="uid", required=True)
    content = Text(required=True)
    observer_id = Text(attribute="observer", required=True)
    observed_id = Text(attribute="observed", required=True)
    session_id = Text(attribute="session", allow_none=True)
    level = Text(required=True, validate=OneOf(*LEVELS))
    source_ids = ListOf(Text(), allow_none=True)
    times_derived = Whole(required=True, metadata={"minimum": 1})
    created_at = Moment(required=True)
