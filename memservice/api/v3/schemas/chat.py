"""Questions and their answers."""

from __future__ import annotations

from memservice.api.fields import (
    Boolean,
    DateTime,
    JsonObject,
    List,
    Name,
    Nested,
    OneOrMore,
    String,
)
from memservice.api.schema import BaseSchema
from memservice.api.v3.schemas.queries import AsOf
from memservice.api.validators import Length, OneOf
from memservice.domain.records import LEVELS
from memservice.domain.sizes import MAX_QUERY

REASONING_LEVELS = ("minimal", "low", "medium", "high", "max")


class WorkspaceChatOptions(AsOf):
    session_id = Name(allow_none=True, load_default=None)
    scope = OneOrMore(100, allow_none=True, load_default=None)
    query = String(required=True, validate=Length(1, MAX_QUERY))
    stream = Boolean(load_default=False)
    reasoning_level = String(load_default="low", validate=OneOf(*REASONING_LEVELS))
    response_format = JsonObject(allow_none=True, load_default=None)
    include_evidence = Boolean(load_default=False)


class DialecticOptions(WorkspaceChatOptions):
    filters = JsonObject(allow_none=True, load_default=None)
    target = Name(allow_none=True, load_default=None)


class EvidenceObservation(BaseSchema):
    """A conclusion that was used."""

    id = String(attribute="uid", required=True)
    content = String(required=True)
    level = String(required=True, validate=OneOf(*LEVELS))
    created_at = DateTime(required=True)
    session_id = String(attribute="session", allow_none=True)
    observer_id = String(attribute="observer", required=True)
    observed_id = String(attribute="observed", required=True)
    source_ids = List(String(), required=True)


class EvidenceMessageRef(BaseSchema):
    """A message that was used, without its content."""

    id = String(attribute="uid", required=True)
    session_id = String(attribute="session", required=True)
    peer_id = String(attribute="author", required=True)
    created_at = DateTime(required=True)


class EvidenceToolCall(BaseSchema):
    tool_name = String(required=True)
    tool_input = JsonObject(required=True)


class Evidence(BaseSchema):
    """Everything that was read for an answer, in order."""

    conclusions = List(Nested(EvidenceObservation), required=True)
    messages = List(Nested(EvidenceMessageRef), required=True)
    tool_calls = List(Nested(EvidenceToolCall), required=True)
    reasoning_trace_id = String(allow_none=True)


class ChatResponse(BaseSchema):
    """`content` is null if there is no answer; `evidence` is included on request."""

    content = String(allow_none=True, required=True)
    evidence = Nested(Evidence, allow_none=True)
