"""Observations: statements of one peer (the observer) about another (the observed)."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from memservice.api import v3
from memservice.api.auth import RouteAccess
from memservice.api.paging import paging
from memservice.api.routing import Call
from memservice.api.schema import page_of
from memservice.api.service_schemas import Accepted as Done
from memservice.api.v2.representation import in_session
from memservice.api.v2.routes import Routes
from memservice.api.v2.schemas import observations as schemas
from memservice.api.v3.deletion import Accepted
from memservice.api.v3.schemas.queries import PageQuery
from memservice.domain.records import Conclusion
from memservice.services import conclusions
from memservice.services.conclusions import Shown
from memservice.services.paging import Page

routes = Routes("observations", "Statements about peers.")

_OBSERVATIONS = "/v2/workspaces/<workspace_id>/observations"
_CONCLUSIONS = "/v2/workspaces/<workspace_id>/conclusions"
_OWN = RouteAccess(workspace="workspace_id")


@routes.operation(
    "POST",
    _OBSERVATIONS,
    also=(_CONCLUSIONS,),
    access=_OWN,
    body=schemas.ObservationBatchCreate,
    large=True,
    answer=schemas.Observation,
    many=True,
)
def create_observations(call: Call, workspace_id: str) -> Sequence[Conclusion]:
    """Store up to 100 observations, all or none

    The workspace, the peers and the session must exist.
    """
    return [
        in_session(conclusion)
        for conclusion in v3.conclusions.create_conclusions(call, workspace_id)
    ]


@routes.operation(
    "POST",
    _OBSERVATIONS + "/list",
    also=(_CONCLUSIONS + "/list",),
    reads=True,
    access=_OWN,
    query=PageQuery,
    body=schemas.ObservationGet,
    body_optional=True,
    answer=page_of(schemas.Observation),
)
def list_observations(call: Call, workspace_id: str) -> Page[Conclusion]:
    """List a workspace's observations, newest first"""
    page = conclusions.page(
        call.rt,
        call.principal,
        workspace_id,
        call.body["filters"],
        paging(call.query),
        Shown(of_scopes=False),
    )
    return replace(page, items=[in_session(item) for item in page.items])


@routes.operation(
    "POST",
    _OBSERVATIONS + "/query",
    also=(_CONCLUSIONS + "/query",),
    reads=True,
    access=_OWN,
    body=schemas.ObservationQuery,
    answer=schemas.Observation,
    many=True,
)
def query_observations(call: Call, workspace_id: str) -> Sequence[Conclusion]:
    """Find the observations nearest to a text

    `filters` must name observer and observed. Nearest first.
    """
    body = call.body
    rows = conclusions.query(
        call.rt,
        call.principal,
        workspace_id,
        body["query"],
        body["top_k"],
        body["distance"],
        body["filters"],
    )
    return [in_session(conclusion) for conclusion in rows]


@routes.operation(
    "DELETE",
    _OBSERVATIONS + "/<observation_id>",
    also=(_CONCLUSIONS + "/<observation_id>",),
    access=_OWN,
    answer=Done,
)
def delete_observation(call: Call, workspace_id: str, observation_id: str) -> Accepted:
    """Delete an observation"""
    conclusions.delete(call.rt, call.principal, workspace_id, observation_id)
    return Accepted("Observation deleted successfully")
