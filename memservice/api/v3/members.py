"""The peers of a session."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memservice.api.auth import RouteAccess
from memservice.api.fields import List, Map, Name, Nested
from memservice.api.paging import paging
from memservice.api.routing import Call, Routes
from memservice.api.schema import page_of
from memservice.api.v3.schemas.configuration import SessionPeerConfig
from memservice.api.v3.schemas.peers import Peer as PeerShape
from memservice.api.v3.schemas.queries import PageQuery
from memservice.api.v3.schemas.sessions import Session as SessionShape
from memservice.domain.records import Peer, Session
from memservice.services import sessions
from memservice.services.paging import Page
from memservice.services.sessions import MemberConfig

routes = Routes("session peers", "The peers of a session and their options.")

_PEERS = "/v3/workspaces/<workspace_id>/sessions/<session_id>/peers"
_CONFIG = _PEERS + "/<peer_id>/config"
_OWN = RouteAccess(workspace="workspace_id", session="session_id")
_READ = RouteAccess(workspace="workspace_id", session="session_id", member=True)

_BODY = {("peers",): ("body",)}
"""The whole body is the argument `peers`."""


def member_configs(configs: Mapping[str, Mapping[str, Any]]) -> dict[str, MemberConfig]:
    return {name: _config(config) for name, config in configs.items()}


def _config(body: Mapping[str, Any]) -> MemberConfig:
    return MemberConfig(body.get("observe_me"), body.get("observe_others"))


def _by_peer() -> Map:
    return Map(Nested(SessionPeerConfig), required=True)


@routes.operation(
    "POST", _PEERS, access=_OWN, body=_by_peer(), answer=SessionShape, locations=_BODY
)
def add_session_peers(call: Call, workspace_id: str, session_id: str) -> Session:
    """Add peers to a session

    An active member keeps its configuration; one that had left gets the new one. The session and
    the peers are created if missing.
    """
    return sessions.add_peers(
        call.rt, call.principal, workspace_id, session_id, member_configs(call.body)
    )


@routes.operation("PUT", _PEERS, access=_OWN, body=_by_peer(), answer=SessionShape, locations=_BODY)
def set_session_peers(call: Call, workspace_id: str, session_id: str) -> Session:
    """Replace the peers of a session"""
    return sessions.set_peers(
        call.rt, call.principal, workspace_id, session_id, member_configs(call.body)
    )


@routes.operation(
    "DELETE",
    _PEERS,
    access=_OWN,
    body=List(Name(), required=True),
    answer=SessionShape,
    locations=_BODY,
)
def remove_session_peers(call: Call, workspace_id: str, session_id: str) -> Session:
    """Remove peers from a session

    Unknown names are ignored.
    """
    return sessions.remove_peers(call.rt, call.principal, workspace_id, session_id, call.body)


@routes.operation("GET", _PEERS, access=_READ, query=PageQuery, answer=page_of(PeerShape))
def list_session_peers(call: Call, workspace_id: str, session_id: str) -> Page[Peer]:
    """List the peers of a session"""
    return sessions.members_page(
        call.rt, call.principal, workspace_id, session_id, paging(call.query)
    )


@routes.operation("GET", _CONFIG, access=_READ, answer=SessionPeerConfig)
def get_session_peer_config(
    call: Call, workspace_id: str, session_id: str, peer_id: str
) -> MemberConfig:
    """Get the options of a peer in a session"""
    return sessions.get_peer_config(call.rt, call.principal, workspace_id, session_id, peer_id)


@routes.operation("PUT", _CONFIG, access=_OWN, body=SessionPeerConfig, status=(204,))
def set_session_peer_config(call: Call, workspace_id: str, session_id: str, peer_id: str) -> None:
    """Change the options of a peer in a session

    Fields that are null or absent do not change. A peer that was never in the session joins it.
    """
    sessions.set_peer_config(
        call.rt, call.principal, workspace_id, session_id, peer_id, _config(call.body)
    )
