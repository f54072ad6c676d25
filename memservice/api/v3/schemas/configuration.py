"""The configuration that workspaces, sessions, messages and members of a session carry, as callers send it."""

from __future__ import annotations

from typing import Any

from marshmallow import INCLUDE, pre_load

from memservice.api.fields import (
    Flag,
    Part,
    Text,
    Whole,
)
from memservice.api.schema import Shape
from memservice.api.validators import Range
from memservice.domain.values import strip_nul


class ReasoningConfiguration(Shape):
    enabled = Flag(allow_none=True)
    custom_instructions = Text(allow_none=True)


class PeerCardConfiguration(Shape):
    use = Flag(allow_none=True)
    create = Flag(allow_none=True)
    custom_instructions = Text(allow_none=True)


class SummaryConfiguration(Shape):
    enabled = Flag(allow_none=True)
    messages_per_short_summary = Whole(allow_none=True, validate=Range(10))
    messages_per_long_summary = Whole(allow_none=True, validate=Range(20))
    custom_instructions = Text(allow_none=True)


class DreamConfiguration(Shape):
    enabled = Flag(allow_none=True)
    custom_instructions = Text(allow_none=True)


class DialecticConfiguration(Shape):
    custom_instructions = Text(allow_none=True)


class _Sections(Shape):
    reasoning = Part(ReasoningConfiguration, allow_none=True)
    peer_card = Part(PeerCardConfiguration, allow_none=True)
    summary = Part(SummaryConfiguration, allow_none=True)
    dream = Part(DreamConfiguration, allow_none=True)
    dialectic = Part(DialecticConfiguration, allow_none=True)
    custom_instructions = Text(allow_none=True)

    class Meta:
        unknown = INCLUDE  # unknown top-level keys are stored; inside the sections they are dropped

    @pre_load
    def _without_nul(self, data: Any, **kwargs: Any) -> Any:
        # Before anything is checked: "summary\0" is stored as "summary", and has to be as good as that.
        return strip_nul(data)


class WorkspaceConfiguration(_Sections):
    """Five known sections, a text for all of them, and any other top-level key."""


class SessionConfiguration(_Sections):
    """As a workspace's; what is set here goes before the workspace's."""


class MessageConfiguration(Shape):
    reasoning = Part(ReasoningConfiguration, allow_none=True)


class SessionPeerConfig(Shape):
    """How a peer takes part in a session; null = nothing said."""

    observe_me = Flag(allow_none=True)
    observe_others = Flag(allow_none=True)
