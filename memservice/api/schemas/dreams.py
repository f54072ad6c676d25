"""Dreams."""

from __future__ import annotations

from memservice.api.schemas.base import Shape
from memservice.api.schemas.checks import OneOf
from memservice.api.schemas.fields import Flag, Name, Text


class ScheduleDreamRequest(Shape):
    observer = Name(required=True)
    observed = Name(allow_none=True, load_default=None)
    dream_type = Text(required=True, validate=OneOf("omni", "card_refresh"))
    session_id = Name(allow_none=True, load_default=None)
    rebuild = Flag(load_default=False)
