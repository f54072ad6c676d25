"""Messages, and upload of files as messages."""

from __future__ import annotations

from collections.abc import Sequence

from memservice.api import v3
from memservice.api.auth import RouteAccess
from memservice.api.paging import paging
from memservice.api.routing import Call
from memservice.api.schema import page_of
from memservice.api.v2.routes import Routes
from memservice.api.v2.schemas import messages as schemas
from memservice.api.v3.schemas.messages import Message as MessageShape
from memservice.api.v3.schemas.messages import MessageHeaders
from memservice.api.v3.schemas.queries import PageQuery
from memservice.domain.records import Message
from memservice.services.paging import Page
from memservice.services.v2 import peer_messages

routes = Routes("messages", "The messages of a session, in order.")

_MESSAGES = "/v2/workspaces/<workspace_id>/sessions/<session_id>/messages"
_OF_PEER = "/v2/workspaces/<workspace_id>/peers/<peer_id>/messages"
_OWN = RouteAccess(workspace="workspace_id", peer="peer_id")
_NEWEST = v3.messages.routes

routes.as_newest(
    _NEWEST,
    v3.messages.create_messages,
    rule=_MESSAGES + "/",
    also=(_MESSAGES,),
    body=schemas.MessageBatchCreate,
)
routes.as_newest(_NEWEST, v3.uploads.create_messages_with_file, form=schemas.MessageUpload)
routes.as_newest(_NEWEST, v3.messages.list_messages, body=schemas.MessageGet)
routes.as_newest(_NEWEST, v3.messages.get_message)
routes.as_newest(_NEWEST, v3.messages.update_message)


@routes.operation(
    "POST",
    _OF_PEER,
    access=_OWN,
    headers=MessageHeaders,
    body=schemas.MessageBatchCreate,
    large=True,
    answer=MessageShape,
    many=True,
)
def create_messages_for_peer(call: Call, workspace_id: str, peer_id: str) -> Sequence[Message]:
    """Store up to 100 messages outside any conversation, all or none

    They are stored in a separate session of the peer, which the response names.
    """
    drafts = v3.messages.drafts(call.body)
    return peer_messages.create(
        call.rt, call.principal, workspace_id, peer_id, drafts, call.headers["idempotency_key"]
    )


@routes.operation(
    "POST",
    _OF_PEER + "/list",
    reads=True,
    access=_OWN,
    query=PageQuery,
    body=schemas.MessageGet,
    body_optional=True,
    answer=page_of(MessageShape),
)
def list_messages_for_peer(call: Call, workspace_id: str, peer_id: str) -> Page[Message]:
    """List a peer's messages outside any conversation"""
    return peer_messages.page(
        call.rt, call.principal, workspace_id, peer_id, call.body["filters"], paging(call.query)
    )
