"""The configuration of workspaces, sessions, messages and members, as callers send it."""

from __future__ import annotations

from typing import Any

from marshmallow import INCLUDE, RAISE, pre_load

from memservice.api.fields import Boolean, Integer, Nested, String, TypedMessage
from memservice.api.schema import BaseSchema
from memservice.api.validators import Range
from memservice.domain.configuration import MAX_RETENTION_DAYS, MIN_MESSAGES
from memservice.domain.values import strip_nul


class ReasoningConfiguration(BaseSchema):
    enabled = Boolean(allow_none=True)
    custom_instructions = String(allow_none=True)


class PeerCardConfiguration(BaseSchema):
    use = Boolean(allow_none=True)
    create = Boolean(allow_none=True)
    custom_instructions = String(allow_none=True)


class SummaryConfiguration(BaseSchema):
    enabled = Boolean(allow_none=True)
    messages_per_short_summary = Integer(
        allow_none=True, validate=Range(MIN_MESSAGES["messages_per_short_summary"])
    )
    messages_per_long_summary = Integer(
        allow_none=True, validate=Range(MIN_MESSAGES["messages_per_long_summary"])
    )
    custom_instructions = String(allow_none=True)


class DreamConfiguration(BaseSchema):
    enabled = Boolean(allow_none=True)
    custom_instructions = String(allow_none=True)


class DialecticConfiguration(BaseSchema):
    custom_instructions = String(allow_none=True)


_MESSAGES: dict[str, str] = {
    "unknown": TypedMessage("Extra inputs are not permitted", "extra_forbidden"),
}


class _StrictSection(BaseSchema):
    """A section that is an addition to the contract: unknown keys are refused. A misspelt retention
    would keep what its author believes erased."""

    error_messages = _MESSAGES

    class Meta:
        unknown = RAISE


class RetentionConfiguration(_StrictSection):
    """Messages and conclusions that are older are erased; null: never."""

    messages_days = Integer(allow_none=True, validate=Range(1, MAX_RETENTION_DAYS))
    conclusions_days = Integer(allow_none=True, validate=Range(1, MAX_RETENTION_DAYS))


class SelfServiceConfiguration(_StrictSection):
    enabled = Boolean(
        allow_none=True,
        metadata={"description": "Whether a peer's own key may export and erase that peer"},
    )


class _Sections(BaseSchema):
    reasoning = Nested(ReasoningConfiguration, allow_none=True)
    peer_card = Nested(PeerCardConfiguration, allow_none=True)
    summary = Nested(SummaryConfiguration, allow_none=True)
    dream = Nested(DreamConfiguration, allow_none=True)
    dialectic = Nested(DialecticConfiguration, allow_none=True)
    retention = Nested(RetentionConfiguration, allow_none=True)
    custom_instructions = String(allow_none=True)

    class Meta:
        unknown = INCLUDE  # unknown top-level keys are stored; in most sections they are dropped

    @pre_load
    def _without_nul(self, data: Any, **kwargs: Any) -> Any:
        # Before validation: "summary\0" is stored as "summary", so it must be validated as that.
        return strip_nul(data)


class WorkspaceConfiguration(_Sections):
    """Seven known sections, a text for all of them, and any other top-level key."""

    self_service = Nested(SelfServiceConfiguration, allow_none=True)


class SessionConfiguration(_Sections):
    """Like a workspace's configuration, which it overrides."""


class MessageConfiguration(BaseSchema):
    reasoning = Nested(ReasoningConfiguration, allow_none=True)


class SessionPeerConfig(BaseSchema):
    """Options of a peer in a session; null: not set."""

    observe_me = Boolean(allow_none=True)
    observe_others = Boolean(allow_none=True)
