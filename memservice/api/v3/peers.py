"""Peers: their cards, representations and contexts."""

from __future__ import annotations

from collections.abc import Mapping

from flask import Response
from msgspec import Struct, field

from memservice.api.answering import respond_file
from memservice.api.auth import RouteAccess
from memservice.api.paging import paging
from memservice.api.routing import Call, Routes
from memservice.api.schema import page_of
from memservice.api.v3 import erasures
from memservice.api.v3.explaining import HEADERS, respond_search
from memservice.api.v3.schemas import peers as schemas
from memservice.api.v3.schemas.erasures import PeerErasure
from memservice.api.v3.schemas.explanations import ExplainedMessage
from memservice.api.v3.schemas.messages import MessageSearchOptions
from memservice.api.v3.schemas.queries import (
    PageQuery,
    PeerContextQuery,
    PeerErasureQuery,
    PeerGet,
    SessionGet,
    TargetQuery,
)
from memservice.api.v3.schemas.sessions import Session as SessionShape
from memservice.domain.records import Peer, Session
from memservice.services import cards, peers
from memservice.services.erasure import peers as erasure
from memservice.services.erasure import person
from memservice.services.erasure.receipts import Receipt
from memservice.services.paging import Page
from memservice.services.retrieval import context, representation
from memservice.services.retrieval.context import PeerContext
from memservice.services.retrieval.representation import RepresentationOptions

routes = Routes("peers", "Peers are the participants of sessions: people and agents.")

_PEERS = "/v3/workspaces/<workspace_id>/peers"
_PEER = _PEERS + "/<peer_id>"
_OWN = RouteAccess(workspace="workspace_id", peer="peer_id")
NDJSON = "application/x-ndjson"


class Card(Struct, frozen=True):
    peer_card: list[str] | None


class Representation(Struct, frozen=True):
    representation: str


@routes.operation(
    "POST",
    _PEERS,
    access=RouteAccess(workspace="workspace_id", handler=True),
    body=schemas.PeerCreate,
    answer=schemas.Peer,
    status=(200, 201),
)
def get_or_create_peer(call: Call, workspace_id: str) -> tuple[Peer, int]:
    """Get a peer, or create it

    For an existing peer, metadata and configuration, if set, are each replaced. A missing workspace
    is created.
    """
    body = call.body
    peer, created = peers.get_or_create(
        call.rt, call.principal, workspace_id, body["id"], body["metadata"], body["configuration"]
    )
    return peer, 201 if created else 200


@routes.operation(
    "POST",
    _PEERS + "/list",
    reads=True,
    access=RouteAccess(workspace="workspace_id"),
    query=PageQuery,
    body=PeerGet,
    body_optional=True,
    answer=page_of(schemas.Peer),
)
def list_peers(call: Call, workspace_id: str) -> Page[Peer]:
    """List a workspace's peers"""
    return peers.page(
        call.rt,
        call.principal,
        workspace_id,
        call.body["filters"],
        paging(call.query),
        call.body["kind"],
    )


@routes.operation("PUT", _PEER, access=_OWN, body=schemas.PeerUpdate, answer=schemas.Peer)
def update_peer(call: Call, workspace_id: str, peer_id: str) -> Peer:
    """Change a peer's metadata and configuration

    Each is replaced; a field that is null or absent does not change. A missing peer is created.
    """
    return peers.update(
        call.rt,
        call.principal,
        workspace_id,
        peer_id,
        call.body["metadata"],
        call.body["configuration"],
    )


@routes.operation(
    "POST",
    _PEER + "/sessions",
    access=_OWN,
    query=PageQuery,
    body=SessionGet,
    body_optional=True,
    answer=page_of(SessionShape),
)
def list_peer_sessions(call: Call, workspace_id: str, peer_id: str) -> Page[Session]:
    """List the sessions of which a peer is or was a member"""
    return peers.sessions(
        call.rt, call.principal, workspace_id, peer_id, call.body["filters"], paging(call.query)
    )


@routes.operation(
    "POST",
    _PEER + "/representation",
    reads=True,
    access=_OWN,
    body=schemas.PeerRepresentationGet,
    answer=schemas.RepresentationResponse,
)
def get_representation(call: Call, workspace_id: str, peer_id: str) -> Representation:
    """Get what a peer knows about itself, or about another, as Markdown"""
    return Representation(
        representation.of_peer(
            call.rt, call.principal, workspace_id, peer_id, representation_options(call)
        )
    )


def representation_options(call: Call) -> RepresentationOptions:
    body = call.body
    return RepresentationOptions(
        target=body["target"],
        session=body["session_id"],
        filters=body["filters"],
        scope=body["scope"],
        search_query=body["search_query"],
        search_top_k=body["search_top_k"],
        search_max_distance=body["search_max_distance"],
        include_most_frequent=bool(body["include_most_frequent"]),
        max_conclusions=max_conclusions(call, body["max_conclusions"]),
        as_of=body["as_of"],
    )


def max_conclusions(call: Call, requested: int | None) -> int:
    return (
        call.rt.settings.deriver.working_representation_max_observations
        if requested is None
        else requested
    )


@routes.operation(
    "GET", _PEER + "/card", access=_OWN, query=TargetQuery, answer=schemas.PeerCardResponse
)
def get_peer_card(call: Call, workspace_id: str, peer_id: str) -> Card:
    """Get a peer's card of itself, or of `target`"""
    return Card(
        cards.get(call.rt, call.principal, workspace_id, peer_id, call.query["target"] or None)
    )


@routes.operation(
    "PUT",
    _PEER + "/card",
    access=_OWN,
    query=TargetQuery,
    body=schemas.PeerCardSet,
    answer=schemas.PeerCardResponse,
)
def set_peer_card(call: Call, workspace_id: str, peer_id: str) -> Card:
    """Replace a peer's card of itself, or of `target`

    At most the first 40 lines are stored, without duplicates that differ only in case and white
    space. The response contains the stored lines. A missing peer is created.
    """
    return Card(
        cards.put(
            call.rt,
            call.principal,
            workspace_id,
            peer_id,
            call.query["target"] or None,
            call.body["peer_card"],
        )
    )


@routes.operation(
    "GET", _PEER + "/context", access=_OWN, query=PeerContextQuery, answer=schemas.PeerContext
)
def get_peer_context(call: Call, workspace_id: str, peer_id: str) -> PeerContext:
    """Get the representation and the card of a peer, or of `target` from that peer's perspective"""
    query = call.query
    options = RepresentationOptions(
        target=query["target"] or None,
        search_query=query["search_query"],
        search_top_k=query["search_top_k"],
        search_max_distance=query["search_max_distance"],
        include_most_frequent=query["include_most_frequent"],
        max_conclusions=max_conclusions(call, query["max_conclusions"]),
        as_of=query["as_of"],
    )
    return context.of_peer(call.rt, call.principal, workspace_id, peer_id, options)


@routes.operation(
    "POST",
    _PEER + "/search",
    reads=True,
    access=_OWN,
    body=MessageSearchOptions,
    answer=ExplainedMessage,
    many=True,
    answer_headers=HEADERS,
)
def search_peer(call: Call, workspace_id: str, peer_id: str) -> Response:
    """Search the messages that a peer wrote

    Best first. With `explain`, each has the parts of its score.
    """
    return respond_search(call, workspace_id, peer_id=peer_id)


@routes.operation("GET", _PEER + "/export", access=_OWN, file=NDJSON)
def export_peer(call: Call, workspace_id: str, peer_id: str) -> Response:
    """Get everything that is stored of a peer and about it, as one file

    JSON lines: the peer, its memberships, messages, cards, conclusions, documents and keys, without
    what others said. The peer's own key may do this if the workspace's configuration has
    `self_service.enabled`.
    """
    return respond_file(
        lambda: person.export(call.rt, call.principal, workspace_id, peer_id),
        f"{peer_id}.ndjson",  # ids are letters, digits, dashes and underscores
        NDJSON,
    )


class DryRun(Struct, frozen=True):
    """What an erasure of a peer would erase, in the shape of its receipt."""

    workspace: str
    target: str
    counts: Mapping[str, int]
    uid: None = None
    kind: str = "peer"
    session: None = None
    requested_by: None = None
    options: Mapping[str, str] = field(default_factory=dict)
    state: str = "dry_run"
    reason: None = None
    task: None = None
    created_at: None = None
    finished_at: None = None


@routes.operation(
    "DELETE",
    _PEER,
    access=_OWN,
    strict=True,
    query=PeerErasureQuery,
    answer=PeerErasure,
    status=(202, 200),
)
def delete_peer(
    call: Call, workspace_id: str, peer_id: str
) -> tuple[Receipt | DryRun, int, Mapping[str, str]]:
    """Erase a peer

    Everything that it said, everything that is held about it or by it, its card, memberships and
    keys. It is gone immediately and its id is free: a new peer of this id starts empty. What others
    said stays. With `mentions=redact`, the id and the names of the peer are replaced by `[erased]`
    in it: as whole words, in sessions where the peer was a member, and in conclusions, cards and
    notes. Messages that are sent after the request, and metadata, stay as they are. Copies of its
    messages in cloned sessions are its messages too. With `dry_run=true` the response (200) counts
    what would be erased, and with `mentions=redact` how many messages and conclusions would change.
    Otherwise the response is the receipt, and the header `Location` names it.
    The peer's own key may do this if the workspace's configuration has `self_service.enabled`.
    """
    mentions = call.query["mentions"]
    if call.query["dry_run"]:
        counts = erasure.counts(call.rt, call.principal, workspace_id, peer_id, mentions)
        return DryRun(workspace_id, peer_id, counts, options={"mentions": mentions}), 200, {}
    receipt = erasure.erase(call.rt, call.principal, workspace_id, peer_id, mentions)
    return receipt, 202, erasures.location(workspace_id, receipt.uid)
