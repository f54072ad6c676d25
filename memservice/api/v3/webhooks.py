"""Webhooks: endpoints that receive events."""

from __future__ import annotations

from memservice.api.auth import RouteAccess
from memservice.api.paging import paging
from memservice.api.routing import Call, Routes
from memservice.api.schema import page_of
from memservice.api.v3.schemas import webhooks as schemas
from memservice.api.v3.schemas.queries import PageQuery
from memservice.domain.records import Delivery, Task, WebhookEndpoint
from memservice.services import webhooks
from memservice.services.paging import Page
from memservice.services.webhooks import DeadLetter, Registered

routes = Routes("webhooks", "Endpoints that receive events.")

_WEBHOOKS = "/v3/workspaces/<workspace_id>/webhooks"
_WEBHOOK = _WEBHOOKS + "/<endpoint_id>"
_OWN = RouteAccess(workspace="workspace_id")


@routes.operation(
    "POST",
    _WEBHOOKS,
    access=_OWN,
    body=schemas.WebhookEndpointCreate,
    answer=schemas.NewWebhookEndpoint,
    status=(200, 201),
)
def get_or_create_webhook_endpoint(call: Call, workspace_id: str) -> tuple[Registered, int]:
    """Register a URL, or get its endpoint

    The response for a new endpoint contains the secret that signs its deliveries.
    """
    registered = webhooks.register(call.rt, call.principal, workspace_id, call.body["url"])
    return registered, 201 if registered.created else 200


@routes.operation(
    "GET", _WEBHOOKS, access=_OWN, query=PageQuery, answer=page_of(schemas.WebhookEndpoint)
)
def list_webhook_endpoints(call: Call, workspace_id: str) -> Page[WebhookEndpoint]:
    """List a workspace's endpoints"""
    return webhooks.page(call.rt, call.principal, workspace_id, paging(call.query))


@routes.operation("DELETE", _WEBHOOK, access=_OWN, status=(204,))
def delete_webhook_endpoint(call: Call, workspace_id: str, endpoint_id: str) -> None:
    """Delete an endpoint"""
    webhooks.delete(call.rt, call.principal, workspace_id, endpoint_id)


@routes.operation("GET", _WEBHOOKS + "/test", access=_OWN, writes=True, null=True)
def test_emit(call: Call, workspace_id: str) -> None:
    """Deliver a test event to every endpoint"""
    webhooks.send_test(call.rt, call.principal, workspace_id)


@routes.operation(
    "GET",
    _WEBHOOK + "/deliveries",
    access=_OWN,
    query=PageQuery,
    answer=page_of(schemas.WebhookDelivery),
)
def list_deliveries(call: Call, workspace_id: str, endpoint_id: str) -> Page[Delivery]:
    """List the delivery attempts of an endpoint, newest first"""
    return webhooks.deliveries(
        call.rt, call.principal, workspace_id, endpoint_id, paging(call.query)
    )


@routes.operation(
    "GET",
    _WEBHOOK + "/dead_letters",
    access=_OWN,
    query=PageQuery,
    answer=page_of(schemas.DeadLetter),
)
def list_dead_letters(call: Call, workspace_id: str, endpoint_id: str) -> Page[DeadLetter]:
    """List the events that an endpoint never accepted"""
    return webhooks.dead_letters(
        call.rt, call.principal, workspace_id, endpoint_id, paging(call.query)
    )


@routes.operation(
    "POST",
    "/v3/workspaces/<workspace_id>/deliveries/<delivery_id>/redeliver",
    access=_OWN,
    answer=schemas.Redelivery,
    status=(202,),
)
def redeliver(call: Call, workspace_id: str, delivery_id: str) -> Task:
    """Deliver an event again, by the id of an attempt or a dead letter"""
    return webhooks.redeliver(call.rt, call.principal, workspace_id, delivery_id)
