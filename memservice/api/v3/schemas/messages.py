"""Messages, and searching them."""

from __future__ import annotations

from memservice.api.fields import (
    FromPath,
    ListOf,
    Moment,
    Name,
    Object,
    Part,
    Text,
    Whole,
)
from memservice.api.forms import File, JsonText
from memservice.api.schema import Shape
from memservice.api.v3.schemas.configuration import MessageConfiguration
from memservice.api.validators import (
    Length,
    LengthOfSetting,
    Range,
)
from memservice.domain.sizes import MAX_QUERY


class MessageCreate(Shape):
    content = Text(required=True, validate=LengthOfSetting("max_message_size", 25_000))
    peer_id = Name(required=True)
    metadata = Object(allow_none=True, load_default=None)
    configuration = Part(MessageConfiguration, allow_none=True, load_default=None)
    created_at = Moment(allow_none=True, load_default=None)


class MessageBatchCreate(Shape):
    messages = ListOf(Part(MessageCreate), required=True, validate=Length(1, 100))


class MessageUpload(Shape):
    file = File(required=True)
    peer_id = Name(required=True)
    metadata = JsonText(Object(), allow_none=True, load_default=None, metadata={"description": "A JSON object"})
    configuration = JsonText(Part(MessageConfiguration), allow_none=True, load_default=None, metadata={"description": "A JSON object"})
    created_at = Moment(allow_none=True, load_default=None)


class MessageHeaders(Shape):
    idempotency_key = Text(
        data_key="Idempotency-Key",
        load_default=None,
        validate=Length(1, 255),
        metadata={"description": "Names this request: repeated with the same key, it stores nothing again."},
    )


class MessageUpdate(Shape):
    metadata = Object(allow_none=True, load_default=None)


class Message(Shape):
    id = Text(attribute="uid", required=True)
    content = Text(required=True)
    peer_id = Text(attribute="author", required=True)
    session_id = Text(attribute="session", required=True)
    metadata = Object(required=True)
    created_at = Moment(required=True)
    workspace_id = FromPath("workspace_id", required=True)
    token_count = Whole(attribute="tokens", required=True)


class MessageSearchOptions(Shape):
    query = Text(required=True, validate=Length(max=MAX_QUERY))
    filters = Object(allow_none=True, load_default=None)
    limit = Whole(load_default=10, validate=Range(1, 100))


class WorkspaceMessageSearchOptions(MessageSearchOptions):
    scope = Name(allow_none=True, load_default=None)
