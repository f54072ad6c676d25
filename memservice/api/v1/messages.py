"""Messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from memservice.api.locations import ANY
from memservice.api.paging import paging
from memservice.api.routing import Call, Routes
from memservice.api.schema import page_of
from memservice.api.v1 import paths, schemas
from memservice.api.v3.schemas.messages import MessageHeaders
from memservice.api.v3.schemas.queries import PageQuery
from memservice.services.paging import Page
from memservice.services.v1 import messages
from memservice.services.v1.messages import UserMessage, UserMessageDraft
from memservice.services.v1.resolve import Path

routes = Routes("messages", "Messages of a session, by the user or to it.", "v1")


def _draft(body: Mapping[str, Any]) -> UserMessageDraft:
    return UserMessageDraft(body["content"], body["is_user"], body["metadata"])


@routes.operation(
    "POST",
    paths.MESSAGES,
    access=paths.OF_SESSION,
    headers=MessageHeaders,
    body=schemas.MessageCreate,
    answer=schemas.Message,
    locations={("messages", ANY): ("body",)},
)
def create_message_for_session(
    call: Call, app_id: str, user_id: str, session_id: str
) -> UserMessage:
    """Store a message"""
    path, idempotency_key = Path(app_id, user_id, session_id), call.headers["idempotency_key"]
    return messages.create(call.rt, call.principal, path, [_draft(call.body)], idempotency_key)[0]


@routes.operation(
    "POST",
    paths.MESSAGES + "/batch",
    access=paths.OF_SESSION,
    headers=MessageHeaders,
    body=schemas.MessageBatchCreate,
    large=True,
    answer=schemas.Message,
    many=True,
)
def create_batch_messages_for_session(
    call: Call, app_id: str, user_id: str, session_id: str
) -> Sequence[UserMessage]:
    """Store messages in order, all or none"""
    path, idempotency_key = Path(app_id, user_id, session_id), call.headers["idempotency_key"]
    drafts = [_draft(item) for item in call.body["messages"]]
    return messages.create(call.rt, call.principal, path, drafts, idempotency_key)


@routes.operation(
    "POST",
    paths.MESSAGES + "/list",
    reads=True,
    access=paths.OF_SESSION,
    query=PageQuery,
    body=schemas.MessageGet,
    body_optional=True,
    answer=page_of(schemas.Message),
)
def get_messages(call: Call, app_id: str, user_id: str, session_id: str) -> Page[UserMessage]:
    """List a session's messages, in the order of storage"""
    return messages.page(
        call.rt,
        call.principal,
        Path(app_id, user_id, session_id),
        call.body["filter"],
        paging(call.query),
    )


@routes.operation(
    "GET",
    paths.MESSAGES + "/<message_id>",
    access=paths.OF_SESSION,
    answer=schemas.Message,
    key_optional=True,
)
def get_message(
    call: Call, app_id: str, user_id: str, session_id: str, message_id: str
) -> UserMessage:
    """Get a message"""
    return messages.get(call.rt, call.principal, Path(app_id, user_id, session_id), message_id)


@routes.operation(
    "PUT",
    paths.MESSAGES + "/<message_id>",
    access=paths.OF_SESSION,
    body=schemas.MessageUpdate,
    answer=schemas.Message,
)
def update_message(
    call: Call, app_id: str, user_id: str, session_id: str, message_id: str
) -> UserMessage:
    """Replace a message's metadata"""
    return messages.update(
        call.rt,
        call.principal,
        Path(app_id, user_id, session_id),
        message_id,
        call.body["metadata"],
    )
