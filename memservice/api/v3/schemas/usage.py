"""Usage of models."""

from __future__ import annotations

from marshmallow import fields

from memservice.api.fields import Boolean, DateTime, Integer, Nested, String
from memservice.api.schema import BaseSchema
from memservice.api.validators import Range


class UsageQuery(BaseSchema):
    days = Integer(
        load_default=30,
        validate=Range(1, 400),
        metadata={"description": "Number of days, including today"},
    )


class Usage(BaseSchema):
    """The sum over some calls."""

    calls = Integer(required=True)
    failed = Integer(
        required=True, metadata={"description": "Calls without a result, or cancelled"}
    )
    input_tokens = Integer(required=True)
    output_tokens = Integer(required=True)
    reasoning_tokens = Integer(
        required=True,
        metadata={"description": "Of the output tokens, as far as providers count them"},
    )
    cache_read_tokens = Integer(required=True)
    cache_write_tokens = Integer(required=True)
    duration_ms = Integer(required=True)


class UsageItem(Usage):
    """The calls of one day for one purpose to one model."""

    day = String(required=True)
    purpose = String(required=True, attribute="task")
    provider = String(required=True)
    model = String(required=True)


class Budget(BaseSchema):
    """The daily budget."""

    daily_tokens = Integer(required=True)
    spent_today = Integer(required=True, attribute="spent")
    reached = Boolean(
        required=True,
        metadata={"description": "Background work is paused, and chat answers without a model"},
    )
    resets_at = DateTime(required=True)


class UsageReport(BaseSchema):
    since = String(required=True, metadata={"description": "The first day, in UTC"})
    until = String(required=True, metadata={"description": "Today"})
    total = Nested(Usage, required=True)
    items = fields.List(Nested(UsageItem), required=True)
    budget = Nested(Budget, required=True, allow_none=True)
