"""Messages, and searching them."""

from __future__ import annotations

from memservice.api.fields import (
    Boolean,
    DateTime,
    FromPath,
    Integer,
    JsonObject,
    List,
    Name,
    Nested,
    String,
)
from memservice.api.forms import File, JsonText
from memservice.api.schema import BaseSchema
from memservice.api.v3.schemas.configuration import MessageConfiguration
from memservice.api.validators import Length, LengthOfSetting, Range
from memservice.domain.sizes import MAX_QUERY

EXPLAIN_OPTION = "Add to each result the parts of its score"


class MessageCreate(BaseSchema):
    content = String(required=True, validate=LengthOfSetting("max_message_size", 25_000))
    peer_id = Name(required=True)
    metadata = JsonObject(allow_none=True, load_default=None)
    configuration = Nested(MessageConfiguration, allow_none=True, load_default=None)
    created_at = DateTime(allow_none=True, load_default=None)


class MessageBatchCreate(BaseSchema):
    messages = List(Nested(MessageCreate), required=True, validate=Length(1, 100))


class MessageUpload(BaseSchema):
    file = File(required=True)
    peer_id = Name(required=True)
    metadata = JsonText(
        JsonObject(), allow_none=True, load_default=None, metadata={"description": "A JSON object"}
    )
    configuration = JsonText(
        Nested(MessageConfiguration),
        allow_none=True,
        load_default=None,
        metadata={"description": "A JSON object"},
    )
    created_at = DateTime(allow_none=True, load_default=None)


class MessageHeaders(BaseSchema):
    idempotency_key = String(
        data_key="Idempotency-Key",
        load_default=None,
        validate=Length(1, 255),
        metadata={
            "description": (
                "Identifies this request: repeated with the same key, it stores nothing."
            )
        },
    )


class MessageUpdate(BaseSchema):
    metadata = JsonObject(allow_none=True, load_default=None)


class Message(BaseSchema):
    id = String(attribute="uid", required=True)
    content = String(required=True)
    peer_id = String(attribute="author", required=True)
    session_id = String(attribute="session", required=True)
    metadata = JsonObject(required=True)
    created_at = DateTime(required=True)
    workspace_id = FromPath("workspace_id", required=True)
    token_count = Integer(attribute="tokens", required=True)


class MessageSearchOptions(BaseSchema):
    query = String(required=True, validate=Length(max=MAX_QUERY))
    filters = JsonObject(allow_none=True, load_default=None)
    limit = Integer(load_default=10, validate=Range(1, 100))
    explain = Boolean(load_default=False, metadata={"description": EXPLAIN_OPTION})


class WorkspaceMessageSearchOptions(MessageSearchOptions):
    scope = Name(allow_none=True, load_default=None)
