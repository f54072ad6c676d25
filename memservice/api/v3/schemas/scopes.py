"""Scopes: named sets of sessions."""

from __future__ import annotations

from typing import Any, ClassVar

from memservice.api.fields import (
    ListOf,
    MapOf,
    Moment,
    Name,
    Object,
    Text,
)
from memservice.api.schema import (
    Aliased,
    Shape,
)
from memservice.api.validators import Length
from memservice.domain.records import SCOPE_PREFIX


class ScopeId(Text):
    """The id of a scope, from the name of the hidden peer behind it."""

    @staticmethod
    def wire(slug: str) -> str:
        return slug.removeprefix(SCOPE_PREFIX)


class ScopeCreate(Aliased):
    ALIASES: ClassVar[dict[str, str]] = {"id": "name"}

    id = Name(required=True, validate=Length(min=1))
    metadata = Object(allow_none=True, load_default=None)


class Scope(Shape):
    id = ScopeId(attribute="slug", required=True)
    metadata = Object(required=True)
    created_at = Moment(required=True)


class ScopeSessionsAdd(Shape):
    session_ids = ListOf(Name(), required=True, validate=Length(1, 100))


class Backfill(Object):
    """How far the copying from one session is. `docs_copied` is there once something was counted."""

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


class ScopeStatus(Shape):
    backfill_status = MapOf(Backfill())
