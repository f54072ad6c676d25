"""Configuration: what the newest generation calls `reasoning` is called `deriver` here."""

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
    """`deriver` goes before `reasoning`, where a caller sends both."""

    @pre_load
    def _read_newer(self, data: Any, **kwargs: Any) -> Any:
        data = strip_nul(data)  # before any name is looked at: what is left of one is what counts
        if not isinstance(data, dict) or REASONING not in data:
            return data
        rest = {name: value for name, value in data.items() if name != REASONING}
        return rest if DERIVER in rest else {**rest, DERIVER: data[REASONING]}

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
    """As a workspace's; what is set here goes before the workspace's."""

    deriver = Nested(newest.ReasoningConfiguration, allow_none=True)

    class Meta:
        unknown = INCLUDE
        exclude = (REASONING,)


class MessageConfiguration(_Renamed):
    deriver = Nested(newest.ReasoningConfiguration, allow_none=True)
    peer_card = Nested(newest.PeerCardConfiguration, allow_none=True)


class Configuration(fields.Configuration):
    """A workspace's or session's configuration as it is shown, with the client's names."""

    @staticmethod
    def wire(stored: Mapping[str, Any]) -> dict[str, Any]:
        shown = configuration.public(stored)
        if REASONING not in shown or client.current().has_newest_names:
            return shown
        return {
            DERIVER if name == REASONING else name: value
            for name, value in shown.items()
            if name != DERIVER
        }
