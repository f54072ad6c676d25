"""Common bases of these schemas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from marshmallow import post_load, pre_load

from memservice.api.fields import JsonObject
from memservice.api.schema import AliasedSchema
from memservice.api.v2 import client
from memservice.domain.filters import Resource

GLOBAL_SESSION = "__global_observations__"
"""Used if this generation requires the name of a session and there is none."""

_LOGICAL = ("AND", "OR", "NOT")


class LegacySchema(AliasedSchema):
    """A schema with fewer fields than that of the newest generation; the aliases are the newest
    names."""

    ALIASES: ClassVar[Mapping[str, str]] = {}
    DEFAULTS: ClassVar[Mapping[str, Any]] = {}
    """Values of fields that this schema does not have."""

    @post_load
    def _add_defaults(self, data: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        return {**self.DEFAULTS, **data}


class Listing(LegacySchema):
    """The body of a listing. The first clients send the filters as `filter`, with metadata under
    names that are not columns. For sessions they also send `is_active`; true selects only the
    active ones."""

    RESOURCE: ClassVar[Resource]

    filters = JsonObject(allow_none=True, load_default=None)

    @pre_load
    def _read_early(self, data: Any, **kwargs: Any) -> Any:
        if not isinstance(data, dict):
            return data
        filters = data["filters"] if "filters" in data else self._translate(data.get("filter"))
        if (
            data.get("is_active") is True
            and "is_active" in self.RESOURCE.columns
            and isinstance(filters, dict | None)
        ):
            filters = {"AND": [{"is_active": True}, filters or {}]}
        return {**data, "filters": filters}

    def _translate(self, filters: Any) -> Any:
        if not isinstance(filters, dict):
            return filters
        columns = (
            {}
            if client.current().uses_earliest_path
            else {
                name: filters[name]
                for name in filters
                if name in _LOGICAL or name in self.RESOURCE.columns
            }
        )
        metadata = {name: value for name, value in filters.items() if name not in columns}
        return {"AND": [columns, {"metadata": metadata}]} if metadata else columns
