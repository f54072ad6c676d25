"""Messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from memservice.api.auth import RouteAccess
from memservice.api.paging import paging
from memservice.api.routing import Call, Routes
from memservice.api.schema import page_of
from memservice.api.v3 import erasures
from memservice.api.v3.schemas import messages as schemas
from memservice.api.v3.schemas.erasures import Erasure
from memservice.api.v3.schemas.queries import MessageGet, PageQuery
from memservice.domain.records import Message
from memservice.services import messages
from memservice.services.erasure import messages as erasure
from memservice.services.erasure.receipts import Receipt
from memservice.services.messages import Draft
from memservice.services.paging import Page

routes = Routes("messages", "The messages of a session, in order.")

_MESSAGES = "/v3/workspaces/<workspace_id>/sessions/<session_id>/messages"
_MESSAGE = _MESSAGES + "/<message_id>"
_OWN = RouteAccess(workspace="workspace_id", session="session_id")
_READ = RouteAccess(workspace="workspace_id", session="session_id", member=True)


@routes.operation(
    "POST",
    _MESSAGES,
    also=(_MESSAGES + "/",),
    access=_OWN,
    headers=schemas.MessageHeaders,
    body=schemas.MessageBatchCreate,
    large=True,
    answer=schemas.Message,
    many=True,
    status=(201,),
)
def create_messages(call: Call, workspace_id: str, session_id: str) -> Sequence[Message]:
    """Store up to 100 messages, all or none

    The workspace, the session and the authors are created if missing, and the authors join the
    session. A request repeated with the same `Idempotency-Key` header stores nothing and gets the
    response of the first one.
    """
    return messages.create(
        call.rt,
        call.principal,
        workspace_id,
        session_id,
        drafts(call.body),
        call.headers["idempotency_key"],
    )


def drafts(body: Mapping[str, Any]) -> list[Draft]:
    return [
        Draft(
            content=draft["content"],
            author=draft["peer_id"],
            metadata=draft["metadata"],
            configuration=draft["configuration"],
            created_at=draft["created_at"],
        )
        for draft in body["messages"]
    ]


@routes.operation(
    "POST",
    _MESSAGES + "/list",
    reads=True,
    access=_READ,
    query=PageQuery,
    body=MessageGet,
    body_optional=True,
    answer=page_of(schemas.Message),
)
def list_messages(call: Call, workspace_id: str, session_id: str) -> Page[Message]:
    """List a session's messages in the order of storage"""
    return messages.page(
        call.rt, call.principal, workspace_id, session_id, call.body["filters"], paging(call.query)
    )


@routes.operation("GET", _MESSAGE, access=_READ, answer=schemas.Message)
def get_message(call: Call, workspace_id: str, session_id: str, message_id: str) -> Message:
    """Get a message"""
    return messages.get(call.rt, call.principal, workspace_id, session_id, message_id)


@routes.operation("PUT", _MESSAGE, access=_OWN, body=schemas.MessageUpdate, answer=schemas.Message)
def update_message(call: Call, workspace_id: str, session_id: str, message_id: str) -> Message:
    """Replace a message's metadata

    Its content never changes.
    """
    return messages.update(
        call.rt, call.principal, workspace_id, session_id, message_id, call.body["metadata"]
    )


@routes.operation("DELETE", _MESSAGE, access=_OWN, strict=True, answer=Erasure, status=(202,))
def delete_message(
    call: Call, workspace_id: str, session_id: str, message_id: str
) -> tuple[Receipt, int, Mapping[str, str]]:
    """Delete a message

    It is removed immediately, with the conclusions drawn from it alone; conclusions with other
    sources lose this one, and summaries that cover it are written again. A copy of the message in
    a cloned session is a separate message. The response is the receipt, and the header `Location`
    names it: it is `done` when a check has found nothing left.
    """
    receipt = erasure.delete(call.rt, call.principal, workspace_id, session_id, message_id)
    return receipt, 202, erasures.location(workspace_id, receipt.uid)
