"""Every route declares its access, and the declarations equal the contract's matrix."""

from __future__ import annotations

from memservice.api import generations, health, v3
from memservice.api.auth import RouteAccess
from memservice.api.routing import walk
from memservice.app import create_app
from memservice.settings import load_settings

GROUPS = (health.routes, *v3.GROUPS)
W, P, S = "workspace_id", "peer_id", "session_id"

OPEN = RouteAccess(open=True)
ADMIN = RouteAccess(admin=True)
ANY = RouteAccess(handler=True)
IN_WORKSPACE = RouteAccess(workspace=W, handler=True)
WORKSPACE = RouteAccess(workspace=W)
PEER = RouteAccess(workspace=W, peer=P)
SESSION = RouteAccess(workspace=W, session=S)
MEMBER = RouteAccess(workspace=W, session=S, member=True)

_W = f"/v3/workspaces/<{W}>"
_P = f"{_W}/peers/<{P}>"
_S = f"{_W}/sessions/<{S}>"

MATRIX = {
    ("GET", "/health"): OPEN,
    ("GET", "/health/ready"): OPEN,
    ("POST", "/v3/workspaces/list"): ADMIN,
    ("POST", "/v3/keys"): ADMIN,
    ("GET", "/v3/keys"): ADMIN,
    ("DELETE", "/v3/keys/<key_id>"): ADMIN,
    ("GET", "/v3/erasures"): ADMIN,
    ("GET", "/v3/erasures/<erasure_id>"): ADMIN,
    ("GET", f"{_W}/erasures"): WORKSPACE,
    ("GET", f"{_W}/erasures/<erasure_id>"): WORKSPACE,
    ("POST", "/v3/workspaces"): ANY,
    ("PUT", _W): WORKSPACE,
    ("POST", f"{_W}/search"): WORKSPACE,
    ("GET", f"{_W}/queue/status"): WORKSPACE,
    ("POST", f"{_W}/peers/list"): WORKSPACE,
    ("POST", f"{_W}/sessions/list"): WORKSPACE,
    ("POST", f"{_W}/conclusions"): WORKSPACE,
    ("POST", f"{_W}/conclusions/list"): WORKSPACE,
    ("POST", f"{_W}/conclusions/query"): WORKSPACE,
    ("GET", f"{_W}/conclusions/<conclusion_id>"): WORKSPACE,
    ("DELETE", f"{_W}/conclusions/<conclusion_id>"): WORKSPACE,
    ("POST", f"{_W}/peers"): IN_WORKSPACE,
    ("POST", f"{_W}/sessions"): IN_WORKSPACE,
    ("PUT", _P): PEER,
    ("POST", f"{_P}/sessions"): PEER,
    ("POST", f"{_P}/representation"): PEER,
    ("GET", f"{_P}/card"): PEER,
    ("PUT", f"{_P}/card"): PEER,
    ("GET", f"{_P}/context"): PEER,
    ("DELETE", _P): PEER,
    ("GET", f"{_P}/export"): PEER,
    ("POST", f"{_P}/search"): PEER,
    ("POST", f"{_P}/chat"): PEER,
    ("POST", f"{_W}/chat"): WORKSPACE,
    ("PUT", _S): SESSION,
    ("POST", f"{_S}/peers"): SESSION,
    ("PUT", f"{_S}/peers"): SESSION,
    ("DELETE", f"{_S}/peers"): SESSION,
    ("PUT", f"{_S}/peers/<{P}>/config"): SESSION,
    ("POST", f"{_S}/messages"): SESSION,
    ("POST", f"{_S}/messages/upload"): SESSION,
    ("PUT", f"{_S}/messages/<message_id>"): SESSION,
    ("DELETE", f"{_S}/messages/<message_id>"): SESSION,
    ("POST", f"{_S}/messages/list"): MEMBER,
    ("GET", f"{_S}/messages/<message_id>"): MEMBER,
    ("GET", f"{_S}/context"): MEMBER,
    ("GET", f"{_S}/summaries"): MEMBER,
    ("GET", f"{_S}/peers"): MEMBER,
    ("GET", f"{_S}/peers/<{P}>/config"): MEMBER,
    ("POST", f"{_S}/search"): MEMBER,
    ("POST", f"{_W}/webhooks"): WORKSPACE,
    ("GET", f"{_W}/webhooks"): WORKSPACE,
    ("DELETE", f"{_W}/webhooks/<endpoint_id>"): WORKSPACE,
    ("GET", f"{_W}/webhooks/test"): WORKSPACE,
    ("GET", f"{_W}/webhooks/<endpoint_id>/deliveries"): WORKSPACE,
    ("GET", f"{_W}/webhooks/<endpoint_id>/dead_letters"): WORKSPACE,
    ("POST", f"{_W}/deliveries/<delivery_id>/redeliver"): WORKSPACE,
    ("POST", f"{_W}/schedule_dream"): WORKSPACE,
    ("GET", f"{_W}/dreams"): WORKSPACE,
    ("GET", f"{_W}/dreams/<dream_id>"): WORKSPACE,
    ("POST", f"{_W}/dreams/<dream_id>/apply"): WORKSPACE,
    ("POST", f"{_W}/dreams/<dream_id>/discard"): WORKSPACE,
    ("POST", f"{_W}/dreams/<dream_id>/undo"): WORKSPACE,
    ("POST", f"{_W}/conclusions/<conclusion_id>/restore"): WORKSPACE,
    ("POST", f"{_W}/conclusions/<conclusion_id>/invalidate"): WORKSPACE,
    ("GET", f"{_W}/conclusions/<conclusion_id>/history"): WORKSPACE,
    ("PUT", f"{_W}/conclusions/<conclusion_id>"): WORKSPACE,
    ("GET", f"{_W}/queue/failures"): WORKSPACE,
    ("GET", f"{_W}/usage"): WORKSPACE,
    ("POST", f"{_W}/queue/failures/retry"): WORKSPACE,
    ("DELETE", _W): WORKSPACE,
    ("DELETE", _S): SESSION,
    ("POST", f"{_S}/clone"): SESSION,
    ("POST", f"{_W}/scopes"): WORKSPACE,
    ("POST", f"{_W}/scopes/list"): WORKSPACE,
    ("GET", f"{_W}/scopes/<scope_id>"): WORKSPACE,
    ("POST", f"{_W}/scopes/<scope_id>/sessions"): WORKSPACE,
    ("DELETE", f"{_W}/scopes/<scope_id>/sessions/<{S}>"): WORKSPACE,
    ("POST", f"{_W}/scopes/<scope_id>/sessions/list"): WORKSPACE,
    ("GET", f"{_W}/scopes/<scope_id>/status"): WORKSPACE,
}

SERVED_ALONGSIDE = {
    "document",
    "document_v1",
    "document_v2",
    "document_v3",
    "metrics",
    "playground",
    "playground_asset",
}


def test_declared_access_equals_the_matrix() -> None:
    declared = {
        (operation.method, operation.rule): operation.access for operation, _ in walk(GROUPS)
    }
    assert declared == MATRIX, f"each route needs a row in MATRIX in {__file__}"


def test_exactly_seven_routes_allow_member_keys() -> None:
    assert sum(access.member for access in MATRIX.values()) == 7


def test_declared_access_names_path_parameters() -> None:
    for operation, _ in walk(generations.GROUPS):
        for name in (operation.access.workspace, operation.access.peer, operation.access.session):
            assert name is None or f"<{name}>" in operation.rule, operation.rule


def test_every_served_route_declares_its_access() -> None:
    # The console declares its routes itself, see tests/api/test_console.py.
    app = create_app(load_settings(environ={"CONSOLE_ENABLED": "false", "MCP_ENABLED": "false"}))
    declared = {
        (operation.method, operation.rule.rstrip("/")) for operation, _ in walk(generations.GROUPS)
    }
    declared |= {
        (method, rule.rstrip("/"))
        for group in generations.GROUPS
        for method, rule in group.undocumented
    }
    served = {
        (method, rule.rule.rstrip("/"))
        for rule in app.url_map.iter_rules()
        for method in (rule.methods or set()) - {"HEAD"}
        if rule.endpoint not in SERVED_ALONGSIDE
    }
    assert served == declared
