"""Receipts of erasures."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote

from memservice.api.auth import RouteAccess
from memservice.api.paging import paging
from memservice.api.routing import Call, Routes
from memservice.api.schema import page_of
from memservice.api.v3.schemas.erasures import Erasure
from memservice.api.v3.schemas.queries import PageQuery
from memservice.services.erasure import receipts
from memservice.services.erasure.receipts import Receipt
from memservice.services.paging import Page

routes = Routes("erasures", "Receipts of erasures: what was erased, for whom, when.")

_ERASURES = "/v3/workspaces/<workspace_id>/erasures"
_OWN = RouteAccess(workspace="workspace_id")
_ADMIN = RouteAccess(admin=True)


def location(workspace_id: str, erasure_id: str) -> Mapping[str, str]:
    """The header that names the receipt of an erasure that was accepted."""
    return {"Location": f"/v3/workspaces/{quote(workspace_id)}/erasures/{erasure_id}"}


@routes.operation("GET", _ERASURES, access=_OWN, query=PageQuery, answer=page_of(Erasure))
def list_erasures(call: Call, workspace_id: str) -> Page[Receipt]:
    """List the erasures of a workspace, newest first

    Erasures of messages, peers and sessions, including those by retention.
    """
    return receipts.page(call.rt, call.principal, workspace_id, paging(call.query))


@routes.operation("GET", _ERASURES + "/<erasure_id>", access=_OWN, answer=Erasure)
def get_erasure(call: Call, workspace_id: str, erasure_id: str) -> Receipt:
    """Get the receipt of an erasure

    `done` means that everything is erased, and that a search of the rows, texts and vectors found
    nothing left.
    """
    return receipts.get(call.rt, call.principal, workspace_id, erasure_id)


@routes.operation("GET", "/v3/erasures", access=_ADMIN, query=PageQuery, answer=page_of(Erasure))
def list_all_erasures(call: Call) -> Page[Receipt]:
    """List the erasures of all workspaces, newest first

    Includes those of workspaces that no longer exist.
    """
    return receipts.page_of_store(call.rt, call.principal, paging(call.query))


@routes.operation("GET", "/v3/erasures/<erasure_id>", access=_ADMIN, answer=Erasure)
def get_any_erasure(call: Call, erasure_id: str) -> Receipt:
    """Get the receipt of an erasure in any workspace"""
    return receipts.get_of_store(call.rt, call.principal, erasure_id)
