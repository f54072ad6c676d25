"""Events of the request path."""

from __future__ import annotations

from typing import Literal

from memservice.telemetry.events.base import Event


class MessageCreated(Event, frozen=True, kw_only=True):
    """One request stored messages."""

    TYPE = "message.created"
    CATEGORY = "api"
    RESOURCE = ("workspace_name", "session_name", "last_message_id")

    workspace_name: str
    session_name: str
    message_count: int
    total_tokens: int
    source: Literal["api", "file_upload"]
    last_message_id: str


class FileUploaded(Event, frozen=True, kw_only=True):
    """A file was stored as messages. `MessageCreated` reports the messages."""

    TYPE = "file.uploaded"
    CATEGORY = "api"
    RESOURCE = ("workspace_name", "file_id")

    workspace_name: str
    session_name: str
    peer_name: str
    file_id: str
    filename: str | None = None
    content_type: str | None = None
    file_size_bytes: int | None = None
    message_count: int
    total_tokens: int


class ContextRetrieved(Event, frozen=True, kw_only=True):
    """The context of a session or a peer was retrieved."""

    TYPE = "context.retrieved"
    CATEGORY = "api"
    RESOURCE = ("workspace_name", "context_scope", "session_name", "peer_name")

    workspace_name: str
    context_scope: Literal["session", "peer"]
    session_name: str | None = None
    peer_name: str | None = None
    target_name: str | None = None
    tokens_requested: int | None = None
    message_count: int
    has_summary: bool
    has_representation: bool
    has_peer_card: bool
    search_query_provided: bool
    search_top_k: int | None = None
    search_max_distance: float | None = None
    include_most_frequent: bool | None = None
    max_conclusions: int | None = None
    include_summary: bool | None = None
    limit_to_session: bool
    peer_perspective_provided: bool
    total_duration_ms: float
