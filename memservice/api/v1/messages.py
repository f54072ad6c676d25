"""Messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from memservice.api.paging import paging
from memservice.api.routing import Call, Routes
from memservice.api.schema import page_of
from memservice.api.v1 import paths
from memservice.api.v1 import schemas as shapes
from memservice.api.v3.schemas.messages import MessageHeaders
from memservice.api.v3.schemas.queries import PageQuery
from memservice.services.paging import Page
from memservice.services.v1 import messages
from memservice.services.v1.messages import Said, SaidDraft
from memservice.services.v1.resolve import Path

routes = Routes("messages", "What is said in a session, by the user or to it.", "v1")


def _draft(given: Mapping[str, Any]) -> SaidDraft:
    return SaidDraft(given["content"], given["is_user"], given["metadata"])


@routes.operation("POST", paths.MESSAGES, access=paths.OF_SESSION, headers=MessageHeaders, body=shapes.MessageCreate, answer=shapes.Message)
def create_message_for_session(call: Call, app_id: str, user_id: str, session_id: str) -> Said:
    """Store a message"""
    path, once = Path(app_id, user_id, session_id), call.headers["idempotency_key"]
    return messages.create(call.rt, call.who, path, [_draft(call.body)], ("body",), once)[0]


@routes.operation(
    "POST",
    paths.MESSAGES + "/batch",
    access=paths.OF_SESSION,
    headers=MessageHeaders,
    body=shapes.MessageBatchCreate,
    large=True,
    answer=shapes.Message,
    many=True,
)
def create_batch_messages_for_session(call: Call, app_id: str, user_id: str, session_id: str) -> Sequence[Said]:
    """Store messages in order, all or none"""
    path, once = Path(app_id, user_id, session_id), call.headers["idempotency_key"]
    drafts = [_draft(given) for given in call.body["messages"]]
    return messages.create(call.rt, call.who, path, drafts, ("body", "messages"), once)


@routes.operation(
    "POST",
    paths.MESSAGES + "/list",
    access=paths.OF_SESSION,
    query=PageQuery,
    body=shapes.MessageGet,
    body_optional=True,
    answer=page_of(shapes.Message),
)
def get_messages(call: Call, app_id: str, user_id: str, session_id: str) -> Page[Said]:
    """List a session's messages, in the order in which they were stored"""
    return messages.page(call.rt, call.who, Path(app_id, user_id, session_id), call.body["filter"], paging(call.query))


@routes.operation("GET", paths.MESSAGES + "/<message_id>", access=paths.OF_SESSION, answer=shapes.Message, key_optional=True)
def get_message(call: Call, app_id: str, user_id: str, session_id: str, message_id: str) -> Said:
    """Get a message"""
    return messages.get(call.rt, call.who, Path(app_id, user_id, session_id), message_id)


@routes.operation("PUT", paths.MESSAGES + "/<message_id>", access=paths.OF_SESSION, body=shapes.MessageUpdate, answer=shapes.Message)
def update_message(call: Call, app_id: str, user_id: str, session_id: str, message_id: str) -> Said:
    """Replace a message's metadata"""
    return messages.update(call.rt, call.who, Path(app_id, user_id, session_id), message_id, call.body["metadata"])
