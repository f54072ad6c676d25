"""Configuration: `reasoning` of the newest generation is `deriver` here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from marshmallow import INCLUDE, post_load, pre_load

from memservice.api import fields
from memservice.api.fields import Nested
from memservice.api.schema import BaseSchema
from memservice.api.v2 import client
from memservice.api.v3.schemas import configuration as newest
from memservice.domain import configuration
from memservice.domain.values import strip_nul

DERIVER, REASONING = "deriver", "reasoning"


class _Renamed(BaseSchema):
    """Accepts both names; `deriver` takes precedence over `reasoning`."""

    @pre_load
    def _read_newer(self, data: Any, **kwargs: Any) -> Any:
        data = strip_nul(data)  # first, since the name without NUL counts
        if not isinstance(data, dict) or REASONING not in data:
            return data
        remaining = {name: value for name, value in data.items() if name != REASONING}
        return remaining if DERIVER in remaining else {**remaining, DERIVER: data[REASONING]}

    @post_load
    def _rename(self, data: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        return {REASONING if name == DERIVER else name: value for name, value in data.items()}


class WorkspaceConfiguration(_Renamed, newest.WorkspaceConfiguration):
    """Known sections and any other key."""

    deriver = Nested(newest.ReasoningConfiguration, allow_none=True)

    class Meta:
        unknown = INCLUDE
        exclude = (REASONING,)


class SessionConfiguration(_Renamed, newest.SessionConfiguration):
    """Like a workspace's configuration, which it overrides."""

    deriver = Nested(newest.ReasoningConfiguration, allow_none=True)

    class Meta:
        unknown = INCLUDE
        exclude = (REASONING,)


class MessageConfiguration(_Renamed):
    deriver = Nested(newest.ReasoningConfiguration, allow_none=True)
    peer_card = Nested(newest.PeerCardConfiguration, allow_none=True)


class Configuration(fields.Configuration):
    """A workspace's or session's configuration in responses, with the client's names."""

    @staticmethod
    # pyrefly: ignore[bad-override]
    def wire(configuration_values: Mapping[str, Any]) -> dict[str, Any]:
        public_values = configuration.public(configuration_values)
        if REASONING not in public_values or client.current().has_newest_names:
            return public_values
        return {
            DERIVER if name == REASONING else name: value
            for name, value in public_values.items()
            if name != DERIVER
        }
