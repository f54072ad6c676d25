"""Scopes: named sets of sessions."""

from __future__ import annotations

from typing import Any, ClassVar

from memservice.api.fields import DateTime, JsonObject, List, Map, Name, String
from memservice.api.schema import AliasedSchema, BaseSchema
from memservice.api.validators import Length
from memservice.domain.records import SCOPE_PREFIX


class ScopeId(String):
    """The id of a scope, from the name of the hidden peer behind it."""

    @staticmethod
    def wire(slug: str) -> str:  # pyrefly: ignore[bad-override]
        return slug.removeprefix(SCOPE_PREFIX)


class ScopeCreate(AliasedSchema):
    ALIASES: ClassVar[dict[str, str]] = {"id": "name"}

    id = Name(required=True, validate=Length(min=1))
    metadata = JsonObject(allow_none=True, load_default=None)


class Scope(BaseSchema):
    id = ScopeId(attribute="slug", required=True)
    metadata = JsonObject(required=True)
    created_at = DateTime(required=True)


class ScopeSessionsAdd(BaseSchema):
    session_ids = List(Name(), required=True, validate=Length(1, 100))


class Backfill(JsonObject):
    """Progress of copying from one session. `docs_copied` is present once rows were counted."""

    SHAPE: ClassVar[dict[str, Any]] = {
        "required": ["state", "updated_at"],
        "properties": {
            "state": {"type": "string", "enum": ["pending", "completed", "failed"]},
            "updated_at": {"type": "string", "format": "date-time"},
            "docs_copied": {"type": "integer"},
        },
    }

    def __init__(self) -> None:
        super().__init__(metadata=self.SHAPE)


class ScopeStatus(BaseSchema):
    backfill_status = Map(Backfill())
