"""Questions and their answers."""

from __future__ import annotations

from memservice.api.fields import (
    Flag,
    ListOf,
    Moment,
    Name,
    Object,
    OneOrMore,
    Part,
    Text,
)
from memservice.api.schema import Shape
from memservice.api.validators import (
    Length,
    OneOf,
)
from memservice.domain.records import LEVELS

REASONING_LEVELS = ("minimal", "low", "medium", "high", "max")


class WorkspaceChatOptions(Shape):
    session_id = Name(allow_none=True, load_default=None)
    scope = OneOrMore(100, allow_none=True, load_default=None)
    query = Text(required=True, validate=Length(1, 10_000))
    stream = Flag(load_default=False)
    reasoning_level = Text(load_default="low", validate=OneOf(*REASONING_LEVELS))
    response_format = Object(allow_none=True, load_default=None)
    include_evidence = Flag(load_default=False)


class DialecticOptions(WorkspaceChatOptions):
    filters = Object(allow_none=True, load_default=None)
    target = Name(allow_none=True, load_default=None)


class EvidenceObservation(Shape):
    """A conclusion that was read."""

    id = Text(attribute="uid", required=True)
    content = Text(required=True)
    level = Text(required=True, validate=OneOf(*LEVELS))
    created_at = Moment(required=True)
    session_id = Text(attribute="session", allow_none=True)
    observer_id = Text(attribute="observer", required=True)
    observed_id = Text(attribute="observed", required=True)
    source_ids = ListOf(Text(), required=True)


class EvidenceMessageRef(Shape):
    """A message that was read, without its content."""

    id = Text(attribute="uid", required=True)
    session_id = Text(attribute="session", required=True)
    peer_id = Text(attribute="author", required=True)
    created_at = Moment(required=True)


class EvidenceToolCall(Shape):
    tool_name = Text(required=True)
    tool_input = Object(required=True)


class Evidence(Shape):
    """What was read for an answer, in the order in which it was read."""

    conclusions = ListOf(Part(EvidenceObservation), required=True)
    messages = ListOf(Part(EvidenceMessageRef), required=True)
    tool_calls = ListOf(Part(EvidenceToolCall), required=True)
    reasoning_trace_id = Text(allow_none=True)


class ChatResponse(Shape):
    """`content` is null where nothing is to be said; `evidence` is there if it was asked for."""

    content = Text(allow_none=True, required=True)
    evidence = Part(Evidence, allow_none=True)
