"""Observations, which the newest generation calls conclusions.

Each belongs to a session; an observation without one, to `GLOBAL_SESSION`, which does not exist.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from marshmallow import post_load

from memservice.api.fields import DateTime, List, Name, Nested, String
from memservice.api.schema import BaseSchema
from memservice.api.v2.schemas.base import GLOBAL_SESSION, LegacySchema, Listing
from memservice.api.v3.schemas import conclusions
from memservice.api.validators import Length
from memservice.domain.filters import resources

_SESSIONS = ("session_id", "session_name")


def _without_global(filters: Any) -> Any:
    """The filters with None instead of the global session."""
    if isinstance(filters, list):
        return [_without_global(part) for part in filters]
    if not isinstance(filters, Mapping):
        return filters
    return {
        name: _no_session(value) if name in _SESSIONS else _without_global(value)
        for name, value in filters.items()
    }


def _no_session(value: Any) -> Any:
    if isinstance(value, list):
        return [_no_session(item) for item in value]
    if isinstance(value, Mapping):
        return {operator: _no_session(operand) for operator, operand in value.items()}
    return None if value == GLOBAL_SESSION else value


class ObservationGet(Listing):
    RESOURCE = resources.CONCLUSION

    @post_load
    def _read_global(self, data: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        return {**data, "filters": _without_global(data["filters"])}


class ObservationQuery(conclusions.ConclusionQuery):
    class Meta(BaseSchema.Meta):
        exclude = ("as_of", "explain")

    @post_load
    def _read_global(self, data: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        return {**data, "filters": _without_global(data["filters"])}


class ObservationCreate(conclusions.ConclusionCreate):
    session_id = Name(required=True)

    @post_load
    def _read_global(self, data: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        return {**data, "session_id": _no_session(data["session_id"])}


class ObservationBatchCreate(LegacySchema):
    ALIASES: ClassVar[dict[str, str]] = {"observations": "conclusions"}

    conclusions = List(
        Nested(ObservationCreate), data_key="observations", required=True, validate=Length(1, 100)
    )


class Observation(BaseSchema):
    id = String(attribute="uid", required=True)
    content = String(required=True)
    observer_id = String(attribute="observer", required=True)
    observed_id = String(attribute="observed", required=True)
    session_id = String(attribute="session", required=True)
    created_at = DateTime(required=True)
