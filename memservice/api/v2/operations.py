"""Dreams, webhooks and keys."""

from __future__ import annotations

from memservice.api import v3
from memservice.api.auth import RouteAccess
from memservice.api.routing import Call
from memservice.api.v2.routes import Routes
from memservice.api.v2.schemas.peers import TriggerDreamRequest
from memservice.services import dreams as services
from memservice.services import webhooks as endpoints

dreams = Routes(
    "dreams",
    (
        "Dreams consolidate observations: they merge duplicates, replace outdated observations "
        "and write cards."
    ),
)
webhooks = Routes("webhooks", "Endpoints that receive events.")
keys = Routes(
    "keys",
    "API keys, scoped to a workspace, or to one peer or session in it.",
)

_WORKSPACE = "/v2/workspaces/<workspace_id>"
_OWN = RouteAccess(workspace="workspace_id")

dreams.as_newest(v3.dreams.routes, v3.dreams.schedule_dream)
webhooks.as_newest(v3.webhooks.routes, v3.webhooks.get_or_create_webhook_endpoint)
webhooks.as_newest(v3.webhooks.routes, v3.webhooks.list_webhook_endpoints)
webhooks.as_newest(v3.webhooks.routes, v3.webhooks.test_emit)
keys.as_newest(v3.keys.routes, v3.keys.create_key)


@dreams.operation(
    "POST", _WORKSPACE + "/trigger_dream", access=_OWN, body=TriggerDreamRequest, status=(204,)
)
def trigger_dream(call: Call, workspace_id: str) -> None:
    """Schedule a dream of `observer` about `observed` (by default itself)

    It runs as soon as a worker is free. Both types have the same effect. Nothing happens if such a
    dream is already waiting or running, or if there are no observations about these peers yet.
    """
    body = call.body
    request = services.DreamRequest(
        observer=body["observer"], kind=services.OMNI, observed=body["observed"] or None
    )
    services.schedule(call.rt, call.principal, workspace_id, request)


@webhooks.operation("DELETE", _WORKSPACE + "/webhooks/<endpoint_id>", access=_OWN, null=True)
def delete_webhook_endpoint(call: Call, workspace_id: str, endpoint_id: str) -> None:
    """Delete an endpoint"""
    endpoints.delete(call.rt, call.principal, workspace_id, endpoint_id)
