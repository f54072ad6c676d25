"""Sessions, their summaries and their context."""

from __future__ import annotations

from typing import ClassVar

from memservice.api.fields import (
    Configuration,
    FromPath,
    IsActive,
    ListOf,
    MapOf,
    Moment,
    Name,
    Object,
    Part,
    Seconds,
    SummaryType,
    Text,
    Whole,
)
from memservice.api.schema import (
    Aliased,
    NewName,
    Shape,
)
from memservice.api.v3.schemas.configuration import (
    SessionConfiguration,
    SessionPeerConfig,
)
from memservice.api.v3.schemas.messages import Message
from memservice.api.validators import Length


class SessionCreate(Aliased):
    ALIASES: ClassVar[dict[str, str]] = {"id": "name", "peers": "peer_names"}

    id = NewName()
    metadata = Object(allow_none=True, load_default=None)
    peers = MapOf(Part(SessionPeerConfig), allow_none=True, load_default=None)
    configuration = Part(SessionConfiguration, allow_none=True, load_default=None)
    scopes = ListOf(Name(), allow_none=True, load_default=None, validate=Length(max=100))


class SessionUpdate(Shape):
    metadata = Object(allow_none=True, load_default=None)
    configuration = Part(SessionConfiguration, allow_none=True, load_default=None)


class Session(Shape):
    id = Text(attribute="slug", required=True)
    uid = Text(required=True)
    is_active = IsActive(attribute="state", required=True)
    workspace_id = FromPath("workspace_id", required=True)
    metadata = Object(required=True)
    configuration = Configuration(required=True)
    created_at = Moment(required=True)


class Summary(Shape):
    content = Text(required=True)
    message_id = Text(attribute="message_uid", required=True)
    summary_type = SummaryType(attribute="kind", required=True)
    created_at = Seconds(required=True)
    token_count = Whole(attribute="tokens", required=True)


class SessionSummaries(Shape):
    id = FromPath("session_id", required=True)
    short_summary = Part(Summary, attribute="short", allow_none=True)
    long_summary = Part(Summary, attribute="long", allow_none=True)


class SessionContext(Shape):
    id = FromPath("session_id", required=True)
    messages = ListOf(Part(Message), required=True)
    summary = Part(Summary, allow_none=True)
    peer_representation = Text(attribute="representation", allow_none=True)
    peer_card = ListOf(Text(), attribute="card", allow_none=True)
