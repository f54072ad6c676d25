"""Scopes: named sets of sessions with their own conclusions."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from memservice.api.auth import RouteAccess
from memservice.api.paging import paging
from memservice.api.routing import Call, Routes
from memservice.api.schema import page_of
from memservice.api.v3.schemas import scopes as schemas
from memservice.api.v3.schemas.queries import PageQuery
from memservice.api.v3.schemas.sessions import Session as SessionShape
from memservice.domain.records import Peer, ScopeSession, Session
from memservice.services import scopes
from memservice.services.paging import Page

routes = Routes(
    "scopes",
    (
        "Scopes are named sets of sessions with a memory of their own, which covers only these "
        "sessions."
    ),
)

_SCOPES = "/v3/workspaces/<workspace_id>/scopes"
_SCOPE = _SCOPES + "/<scope_id>"
_OWN = RouteAccess(workspace="workspace_id")


class ScopeStatus(Struct, frozen=True):
    backfill_status: dict[str, dict[str, Any]]


@routes.operation(
    "POST", _SCOPES, access=_OWN, body=schemas.ScopeCreate, answer=schemas.Scope, status=(200, 201)
)
def get_or_create_scope(call: Call, workspace_id: str) -> tuple[Peer, int]:
    """Get a scope, or create it

    Metadata, if set, replaces that of an existing scope. A missing workspace is created.
    """
    scope, created = scopes.get_or_create(
        call.rt, call.principal, workspace_id, call.body["id"], call.body["metadata"]
    )
    return scope, 201 if created else 200


@routes.operation(
    "POST",
    _SCOPES + "/list",
    reads=True,
    access=_OWN,
    query=PageQuery,
    answer=page_of(schemas.Scope),
)
def list_scopes(call: Call, workspace_id: str) -> Page[Peer]:
    """List a workspace's scopes"""
    return scopes.page(call.rt, call.principal, workspace_id, paging(call.query))


@routes.operation("GET", _SCOPE, access=_OWN, answer=schemas.Scope)
def get_scope(call: Call, workspace_id: str, scope_id: str) -> Peer:
    """Get a scope"""
    return scopes.get(call.rt, call.principal, workspace_id, scope_id)


@routes.operation(
    "POST", _SCOPE + "/sessions", access=_OWN, body=schemas.ScopeSessionsAdd, status=(204,)
)
def add_scope_sessions(call: Call, workspace_id: str, scope_id: str) -> None:
    """Add sessions to a scope, all or none

    Existing conclusions from a session are copied into the scope's memory in the background.
    """
    scopes.add_sessions(call.rt, call.principal, workspace_id, scope_id, call.body["session_ids"])


@routes.operation("DELETE", _SCOPE + "/sessions/<session_id>", access=_OWN, status=(204,))
def remove_scope_session(call: Call, workspace_id: str, scope_id: str, session_id: str) -> None:
    """Remove a session from a scope

    The scope's conclusions from it are deleted in the background.
    """
    scopes.remove_session(call.rt, call.principal, workspace_id, scope_id, session_id)


@routes.operation(
    "POST",
    _SCOPE + "/sessions/list",
    reads=True,
    access=_OWN,
    query=PageQuery,
    answer=page_of(SessionShape),
)
def list_scope_sessions(call: Call, workspace_id: str, scope_id: str) -> Page[Session]:
    """List the active sessions of a scope, in the order of joining"""
    return scopes.sessions_page(call.rt, call.principal, workspace_id, scope_id, paging(call.query))


@routes.operation("GET", _SCOPE + "/status", access=_OWN, answer=schemas.ScopeStatus)
def get_scope_status(call: Call, workspace_id: str, scope_id: str) -> ScopeStatus:
    """Get the progress of copying the conclusions from each session"""
    entries = scopes.status(call.rt, call.principal, workspace_id, scope_id)
    return ScopeStatus({session_id: _shown(entry) for session_id, entry in entries.items()})


def _shown(entry: ScopeSession) -> dict[str, Any]:
    """The entry as clients expect it: the time with an offset instead of `Z`, and no count until
    there is one."""
    state: dict[str, Any] = {"state": entry.state, "updated_at": entry.updated_at.isoformat()}
    return state if entry.docs_copied is None else {**state, "docs_copied": entry.docs_copied}
