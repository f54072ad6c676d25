"""The peer card by the short path, without its workspace."""

from __future__ import annotations

from memservice.api.auth import RouteAccess
from memservice.api.routing import Call, Routes
from memservice.api.schemas.peers import PeerCardResponse
from memservice.api.schemas.queries import AnyWorkspaceTargetQuery
from memservice.api.v3.peers import Card
from memservice.services import cards

routes = Routes("v2 peers", "Peers in the second generation of the API.")

_DEFAULT = "default"


@routes.operation(
    "GET",
    "/v2/peers/<peer_id>/card",
    access=RouteAccess(peer="peer_id", handler=True),
    query=AnyWorkspaceTargetQuery,
    answer=PeerCardResponse,
)
def get_peer_card_v2(call: Call, peer_id: str) -> Card:
    """Get the card that a peer keeps about itself, or about `target`

    The workspace is the key's, else the one that `workspace_id` names, else `default`.
    """
    workspace = call.who.workspace or call.query["workspace_id"] or _DEFAULT
    return Card(cards.get(call.rt, call.who, workspace, peer_id, call.query["target"] or None))
