"""Webhook endpoints and what was delivered to them."""

from __future__ import annotations

from collections.abc import Sequence

from memservice.domain.filters.ast import where
from memservice.domain.records import Delivery, WebhookEndpoint
from memservice.spi.repositories.base import Noun
from memservice.spi.rows import BY_KEY, Order


class Webhooks(Noun):
    def by_uid(self, workspace: int, uid: str) -> WebhookEndpoint | None:
        return self.rows.get(WebhookEndpoint, where(workspace_key=workspace, uid=uid))

    def by_key(self, key: int, *, lock: bool = False) -> WebhookEndpoint | None:
        return self.rows.get(WebhookEndpoint, where(key=key), lock=lock)

    def by_url(self, workspace: int, url: str) -> WebhookEndpoint | None:
        return self.rows.get(WebhookEndpoint, where(workspace_key=workspace, url=url))

    def of_workspace(self, workspace: int) -> list[WebhookEndpoint]:
        return self.rows.page(WebhookEndpoint, where(workspace_key=workspace))

    def page(self, workspace: int, order: Sequence[Order] = BY_KEY, limit: int = 50, offset: int = 0) -> list[WebhookEndpoint]:
        return self.rows.page(WebhookEndpoint, where(workspace_key=workspace), order, limit, offset)

    def count(self, workspace: int) -> int:
        return self.rows.count(WebhookEndpoint, where(workspace_key=workspace))

    def save(self, endpoint: WebhookEndpoint) -> WebhookEndpoint:
        return self.rows.put([endpoint])[0]

    def erase(self, endpoint: WebhookEndpoint) -> None:
        """The endpoint and the record of its deliveries."""
        self.rows.delete(Delivery, where(endpoint_key=endpoint.key))
        self.rows.delete(WebhookEndpoint, where(key=endpoint.key))

    def record(self, delivery: Delivery) -> Delivery:
        return self.rows.put([delivery])[0]

    def delivery(self, workspace: int, uid: str) -> Delivery | None:
        return self.rows.get(Delivery, where(workspace_key=workspace, uid=uid))

    def deliveries(self, endpoint: int, order: Sequence[Order] = BY_KEY, limit: int = 50, offset: int = 0) -> list[Delivery]:
        return self.rows.page(Delivery, where(endpoint_key=endpoint), order, limit, offset)

    def count_deliveries(self, endpoint: int) -> int:
        return self.rows.count(Delivery, where(endpoint_key=endpoint))
