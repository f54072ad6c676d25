"""Dreams."""

from __future__ import annotations

from memservice.api.fields import (
    Flag,
    Name,
    Text,
)
from memservice.api.schema import Shape
from memservice.api.validators import OneOf


class ScheduleDreamRequest(Shape):
    observer = Name(required=True)
    observed = Name(allow_none=True, load_default=None)
    dream_type = Text(required=True, validate=OneOf("omni", "card_refresh"))
    session_id = Name(allow_none=True, load_default=None)
    rebuild = Flag(load_default=False)
