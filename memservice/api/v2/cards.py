"""The peer card under the short path, without its workspace. The operation belongs to the group of
peers."""

from __future__ import annotations

from memservice.api.auth import RouteAccess
from memservice.api.routing import Call
from memservice.api.v2 import peers
from memservice.api.v3.peers import Card
from memservice.api.v3.schemas.peers import PeerCardResponse
from memservice.api.v3.schemas.queries import AnyWorkspaceTargetQuery

routes = peers.routes

_DEFAULT = "default"


@routes.operation(
    "GET",
    "/v2/peers/<peer_id>/card",
    access=RouteAccess(peer="peer_id", handler=True),
    query=AnyWorkspaceTargetQuery,
    answer=PeerCardResponse,
)
def get_peer_card_by_key(call: Call, peer_id: str) -> Card:
    """Get a peer's card of itself, or of `target`

    The workspace is that of the key, else `workspace_id`, else `default`.
    """
    workspace = call.principal.workspace_id or call.query["workspace_id"] or _DEFAULT
    return peers.card_of(call, workspace, peer_id)
