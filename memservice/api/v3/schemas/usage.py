"""What calls of models cost, on the wire."""

from __future__ import annotations

from marshmallow import fields

from memservice.api.fields import (
    Flag,
    Moment,
    Part,
    Text,
    Whole,
)
from memservice.api.schema import Shape
from memservice.api.validators import Range


class UsageQuery(Shape):
    days = Whole(load_default=30, validate=Range(1, 400), metadata={"description": "How many days, today among them"})


class Usage(Shape):
    """The sum over some calls."""

    calls = Whole(required=True)
    failed = Whole(required=True, metadata={"description": "Calls that gave nothing, or were broken off"})
    input_tokens = Whole(required=True)
    output_tokens = Whole(required=True)
    cache_read_tokens = Whole(required=True)
    cache_write_tokens = Whole(required=True)
    duration_ms = Whole(required=True)


class UsageItem(Usage):
    """The calls of one day for one purpose to one model."""

    day = Text(required=True)
    purpose = Text(required=True, attribute="task")
    provider = Text(required=True)
    model = Text(required=True)


class Budget(Shape):
    """What may be spent in a day."""

    daily_tokens = Whole(required=True)
    spent_today = Whole(required=True, attribute="spent")
    reached = Flag(required=True, metadata={"description": "Background work waits, and chat answers without a model"})
    resets_at = Moment(required=True)


class UsageReport(Shape):
    since = Text(required=True, metadata={"description": "The first day, in UTC"})
    until = Text(required=True, metadata={"description": "Today"})
    total = Part(Usage, required=True)
    items = fields.List(Part(UsageItem), required=True)
    budget = Part(Budget, required=True, allow_none=True)
