"""What these shapes have in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from marshmallow import post_load, pre_load

from memservice.api.fields import JsonObject
from memservice.api.schema import AliasedSchema
from memservice.api.v2 import client
from memservice.domain.filters import Resource

GLOBAL_SESSION = "__global_observations__"
"""Stands where this generation needs the name of a session and there is none."""

_LOGICAL = ("AND", "OR", "NOT")


class LegacySchema(AliasedSchema):
    """A schema with fewer fields than that of the newest generation; the aliases are the newest
    names."""

    ALIASES: ClassVar[Mapping[str, str]] = {}
    DEFAULTS: ClassVar[Mapping[str, Any]] = {}
    """Values of the fields that this schema lacks."""

    @post_load
    def _add_defaults(self, data: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        return {**self.DEFAULTS, **data}


class Listing(LegacySchema):
    """The body of a listing. The first clients call the filters `filter`, and mean the metadata by
    what is no name of a column; of sessions they also say `is_active`, and mean the active ones
    alone if it is true."""

    RESOURCE: ClassVar[Resource]

    filters = JsonObject(allow_none=True, load_default=None)

    @pre_load
    def _read_early(self, data: Any, **kwargs: Any) -> Any:
        if not isinstance(data, dict):
            return data
        filters = data["filters"] if "filters" in data else self._translated(data.get("filter"))
        if (
            data.get("is_active") is True
            and "is_active" in self.RESOURCE.columns
            and isinstance(filters, dict | None)
        ):
            filters = {"AND": [{"is_active": True}, filters or {}]}
        return {**data, "filters": filters}

    def _translated(self, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        known = (
            {}
            if client.current().uses_earliest_path
            else {
                name: given[name]
                for name in given
                if name in _LOGICAL or name in self.RESOURCE.columns
            }
        )
        metadata = {name: value for name, value in given.items() if name not in known}
        return {"AND": [known, {"metadata": metadata}]} if metadata else known
