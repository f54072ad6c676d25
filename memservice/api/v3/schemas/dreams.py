"""Dreams."""

from __future__ import annotations

from memservice.api.fields import Boolean, Name, String
from memservice.api.schema import BaseSchema
from memservice.api.validators import OneOf


class ScheduleDreamRequest(BaseSchema):
    observer = Name(required=True)
    observed = Name(allow_none=True, load_default=None)
    dream_type = String(required=True, validate=OneOf("omni", "card_refresh"))
    session_id = Name(allow_none=True, load_default=None)
    rebuild = Boolean(load_default=False)
