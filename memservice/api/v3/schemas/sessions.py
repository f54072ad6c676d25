"""Sessions, their summaries and their context."""

from __future__ import annotations

from typing import ClassVar

from memservice.api.fields import (
    Configuration,
    DateTime,
    FromPath,
    Integer,
    IsActive,
    JsonObject,
    List,
    Map,
    Name,
    Nested,
    Seconds,
    String,
    SummaryType,
)
from memservice.api.schema import AliasedSchema, BaseSchema, NewName
from memservice.api.v3.schemas.configuration import SessionConfiguration, SessionPeerConfig
from memservice.api.v3.schemas.messages import Message
from memservice.api.validators import Length


class SessionCreate(AliasedSchema):
    ALIASES: ClassVar[dict[str, str]] = {"id": "name", "peers": "peer_names"}

    id = NewName()
    metadata = JsonObject(allow_none=True, load_default=None)
    peers = Map(Nested(SessionPeerConfig), allow_none=True, load_default=None)
    configuration = Nested(SessionConfiguration, allow_none=True, load_default=None)
    scopes = List(Name(), allow_none=True, load_default=None, validate=Length(max=100))


class SessionUpdate(BaseSchema):
    metadata = JsonObject(allow_none=True, load_default=None)
    configuration = Nested(SessionConfiguration, allow_none=True, load_default=None)


class Session(BaseSchema):
    id = String(attribute="slug", required=True)
    uid = String(required=True)
    is_active = IsActive(attribute="state", required=True)
    workspace_id = FromPath("workspace_id", required=True)
    metadata = JsonObject(required=True)
    configuration = Configuration(required=True)
    created_at = DateTime(required=True)


class Summary(BaseSchema):
    content = String(required=True)
    message_id = String(attribute="message_uid", required=True)
    summary_type = SummaryType(attribute="kind", required=True)
    created_at = Seconds(required=True)
    token_count = Integer(attribute="tokens", required=True)


class SessionSummaries(BaseSchema):
    id = FromPath("session_id", required=True)
    short_summary = Nested(Summary, attribute="short", allow_none=True)
    long_summary = Nested(Summary, attribute="long", allow_none=True)


class SessionContext(BaseSchema):
    id = FromPath("session_id", required=True)
    messages = List(Nested(Message), required=True)
    summary = Nested(Summary, allow_none=True)
    peer_representation = String(attribute="representation", allow_none=True)
    peer_card = List(String(), attribute="card", allow_none=True)
