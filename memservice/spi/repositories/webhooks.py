"""Webhook endpoints and their deliveries."""

from __future__ import annotations

from collections.abc import Sequence

from memservice.domain.filters.ast import equals
from memservice.domain.records import Delivery, WebhookEndpoint
from memservice.spi.repositories.base import Repository
from memservice.spi.rows import BY_KEY, Order


class Webhooks(Repository):
    def by_uid(self, workspace_key: int, uid: str) -> WebhookEndpoint | None:
        return self.rows.get(WebhookEndpoint, equals(workspace_key=workspace_key, uid=uid))

    def by_key(self, key: int, *, lock: bool = False) -> WebhookEndpoint | None:
        return self.rows.get(WebhookEndpoint, equals(key=key), lock=lock)

    def by_url(self, workspace_key: int, url: str) -> WebhookEndpoint | None:
        return self.rows.get(WebhookEndpoint, equals(workspace_key=workspace_key, url=url))

    def of_workspace(self, workspace_key: int) -> list[WebhookEndpoint]:
        return self.rows.page(WebhookEndpoint, equals(workspace_key=workspace_key))

    def page(
        self, workspace_key: int, order: Sequence[Order] = BY_KEY, limit: int = 50, offset: int = 0
    ) -> list[WebhookEndpoint]:
        return self.rows.page(
            WebhookEndpoint, equals(workspace_key=workspace_key), order, limit, offset
        )

    def count(self, workspace_key: int) -> int:
        return self.rows.count(WebhookEndpoint, equals(workspace_key=workspace_key))

    def save(self, endpoint: WebhookEndpoint) -> WebhookEndpoint:
        return self.rows.put([endpoint])[0]

    def erase(self, endpoint: WebhookEndpoint) -> None:
        """Erase the endpoint and its deliveries."""
        self.rows.delete(Delivery, equals(endpoint_key=endpoint.key))
        self.rows.delete(WebhookEndpoint, equals(key=endpoint.key))

    def record(self, delivery: Delivery) -> Delivery:
        return self.rows.put([delivery])[0]

    def delivery(self, workspace_key: int, uid: str) -> Delivery | None:
        return self.rows.get(Delivery, equals(workspace_key=workspace_key, uid=uid))

    def deliveries(
        self, endpoint: int, order: Sequence[Order] = BY_KEY, limit: int = 50, offset: int = 0
    ) -> list[Delivery]:
        return self.rows.page(Delivery, equals(endpoint_key=endpoint), order, limit, offset)

    def count_deliveries(self, endpoint: int) -> int:
        return self.rows.count(Delivery, equals(endpoint_key=endpoint))
