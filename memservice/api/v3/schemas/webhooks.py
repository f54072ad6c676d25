"""Webhook endpoints and their deliveries."""

from __future__ import annotations

from memservice.api.fields import DateTime, FromPath, Integer, String
from memservice.api.schema import BaseSchema


class WebhookEndpointCreate(BaseSchema):
    url = String(required=True)


class WebhookEndpoint(BaseSchema):
    id = String(attribute="uid", required=True)
    workspace_id = FromPath("workspace_id", required=True)
    url = String(required=True)
    created_at = DateTime(required=True)
    state = String(
        metadata={"description": "`active`, or `paused` after too many failures in a row"}
    )


class NewWebhookEndpoint(BaseSchema):
    id = String(attribute="endpoint.uid", required=True)
    workspace_id = FromPath("workspace_id", required=True)
    url = String(attribute="endpoint.url", required=True)
    created_at = DateTime(attribute="endpoint.created_at", required=True)
    state = String(attribute="endpoint.state")
    secret = String(
        allow_none=True,
        metadata={"description": "Signs the deliveries; shown only when the endpoint is created"},
    )


class WebhookDelivery(BaseSchema):
    id = String(attribute="uid", required=True)
    event_id = String(attribute="event_uid", required=True)
    type = String(attribute="event", required=True)
    attempt = Integer(required=True)
    status = Integer(allow_none=True)
    error = String(allow_none=True)
    duration_ms = Integer(allow_none=True)
    created_at = DateTime(required=True)


class DeadLetter(BaseSchema):
    id = String(attribute="uid", required=True)
    event_id = String(attribute="event_uid", required=True)
    type = String(attribute="event", required=True)
    attempts = Integer(required=True)
    error = String(allow_none=True)
    created_at = DateTime(required=True)


class Redelivery(BaseSchema):
    id = String(attribute="uid", required=True)
    created_at = DateTime(required=True)
