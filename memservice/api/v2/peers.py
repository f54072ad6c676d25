"""Peers: their cards, representations and contexts."""

from __future__ import annotations

from flask import Response

from memservice.api import v3
from memservice.api.answers import json_answer
from memservice.api.auth import RouteAccess
from memservice.api.encoding import encoder
from memservice.api.routing import Call
from memservice.api.schema import page_of
from memservice.api.v2 import client
from memservice.api.v2 import representation as v2_representation
from memservice.api.v2.representation import OfPeer, OfPeerAlone
from memservice.api.v2.routes import Routes
from memservice.api.v2.schemas import peers as schemas
from memservice.api.v2.schemas.workspaces import Session, SessionGet
from memservice.api.v3.peers import Card, Representation, representation_options
from memservice.api.v3.schemas import peers as newest
from memservice.api.v3.schemas.queries import TargetQuery
from memservice.domain.errors import NotFound
from memservice.services import cards
from memservice.services.retrieval import representation
from memservice.services.retrieval.representation_text import markdown

routes = Routes("peers", "Peers are the participants of sessions: people and agents.")

_PEER = "/v2/workspaces/<workspace_id>/peers/<peer_id>"
_OWN = RouteAccess(workspace="workspace_id", peer="peer_id")
_NEWEST = v3.peers.routes

_encode_text = encoder(newest.RepresentationResponse)
_encode_context = encoder(newest.PeerContext)

routes.as_newest(_NEWEST, v3.peers.get_or_create_peer)
routes.as_newest(_NEWEST, v3.peers.list_peers, body=schemas.PeerGet)
routes.as_newest(_NEWEST, v3.peers.update_peer)
routes.as_newest(_NEWEST, v3.peers.list_peer_sessions, body=SessionGet, answer=page_of(Session))


@routes.operation(
    "POST",
    _PEER + "/representation",
    reads=True,
    access=_OWN,
    body=schemas.PeerRepresentationGet,
    answer=schemas.RepresentationResponse,
)
def get_working_representation(
    call: Call, workspace_id: str, peer_id: str
) -> OfPeerAlone | Response:
    """Get what a peer knows about itself, or about another"""
    selection = representation.selection_for_peer(
        call.rt, call.principal, workspace_id, peer_id, representation_options(call)
    )
    if client.current().reads_text:
        return json_answer(_encode_text(Representation(markdown(selection)), {}))
    return OfPeerAlone(v2_representation.representation_of(selection))


@routes.operation(
    "GET",
    _PEER + "/context",
    access=_OWN,
    query=schemas.PeerContextQuery,
    answer=schemas.PeerContext,
)
def get_peer_context(call: Call, workspace_id: str, peer_id: str) -> OfPeer | Response:
    """Get the representation and the card of a peer, or of `target` from that peer's perspective"""
    context = v3.peers.get_peer_context(call, workspace_id, peer_id)
    return (
        json_answer(_encode_context(context, {}))
        if client.current().reads_text
        else v2_representation.of_peer(context)
    )


@routes.operation(
    "GET", _PEER + "/card", access=_OWN, query=TargetQuery, answer=newest.PeerCardResponse
)
def get_peer_card(call: Call, workspace_id: str, peer_id: str) -> Card:
    """Get a peer's card of itself, or of `target`

    Null for a peer that does not exist.
    """
    return card_of(call, workspace_id, peer_id)


def card_of(call: Call, workspace_id: str, peer_id: str) -> Card:
    try:
        return Card(
            cards.get(call.rt, call.principal, workspace_id, peer_id, call.query["target"] or None)
        )
    except NotFound:
        return Card(None)


@routes.operation(
    "PUT",
    _PEER + "/card",
    access=_OWN,
    query=TargetQuery,
    body=newest.PeerCardSet,
    answer=newest.PeerCardResponse,
)
def set_peer_card(call: Call, workspace_id: str, peer_id: str) -> Card:
    """Replace a peer's card of itself, or of `target`

    At most the first 40 lines are stored, without duplicates that differ only in case and white
    space. The response contains the stored lines. The peer must exist.
    """
    cards.get(call.rt, call.principal, workspace_id, peer_id)
    return v3.peers.set_peer_card(call, workspace_id, peer_id)
