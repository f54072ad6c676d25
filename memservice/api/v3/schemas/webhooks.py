"""Webhook endpoints, and what was delivered to them."""

from __future__ import annotations

from memservice.api.fields import (
    FromPath,
    Moment,
    Text,
    Whole,
)
from memservice.api.schema import Shape


class WebhookEndpointCreate(Shape):
    url = Text(required=True)


class WebhookEndpoint(Shape):
    id = Text(attribute="uid", required=True)
    workspace_id = FromPath("workspace_id", required=True)
    url = Text(required=True)
    created_at = Moment(required=True)
    state = Text(metadata={"description": "`active`, or `paused` after too many failures in a row"})


class NewWebhookEndpoint(Shape):
    id = Text(attribute="endpoint.uid", required=True)
    workspace_id = FromPath("workspace_id", required=True)
    url = Text(attribute="endpoint.url", required=True)
    created_at = Moment(attribute="endpoint.created_at", required=True)
    state = Text(attribute="endpoint.state")
    secret = Text(allow_none=True, metadata={"description": "Signs the deliveries; shown when the endpoint is created, never again"})


class WebhookDelivery(Shape):
    id = Text(attribute="uid", required=True)
    event_id = Text(attribute="event_uid", required=True)
    type = Text(attribute="event", required=True)
    attempt = Whole(required=True)
    status = Whole(allow_none=True)
    error = Text(allow_none=True)
    duration_ms = Whole(allow_none=True)
    created_at = Moment(required=True)


class DeadLetter(Shape):
    id = Text(attribute="uid", required=True)
    event_id = Text(attribute="event_uid", required=True)
    type = Text(attribute="event", required=True)
    attempts = Whole(required=True)
    error = Text(allow_none=True)
    created_at = Moment(required=True)


class Redelivery(Shape):
    id = Text(attribute="uid", required=True)
    created_at = Moment(required=True)
