"""Scenarios for the last client of the first generation, through both of its faces."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

import honcho as client  # type: ignore[import-not-found]  # installed in the client's own environment only

from support.clients import harness
from support.clients.harness import Resource, Scenarios, methods_of
from support.clients.harness import contents as contents
from support.clients.harness import ids as ids


class Caller(harness.Caller):
    """A client that may do everything."""

    def __init__(self, url: str, key: str, asynchronous: bool) -> None:
        super().__init__(asynchronous)
        self._url = url
        self.api = self.with_key(key)

    def with_key(self, key: str, retries: int = 0) -> Any:
        """A client with this key. By default it does not retry, so that server errors show."""
        kind = client.AsyncHoncho if self.asynchronous else client.Honcho
        return Resource(
            kind(base_url=self._url, api_key=key, max_retries=retries, timeout=30.0), ""
        )

    @property
    def apps(self) -> Any:
        return self.api.apps

    @property
    def users(self) -> Any:
        return self.apps.users

    @property
    def sessions(self) -> Any:
        return self.users.sessions

    def name(self, prefix: str = "app") -> str:
        return super().name(prefix).replace("-", " ")

    async def user(self) -> dict[str, str]:
        """A new app and a user in it, by id."""
        app = await self.apps.create(name=self.name())
        return {"app_id": app.id, "user_id": (await self.users.create(app.id, name="Ann B.")).id}

    async def page(self, call: Awaitable[Any]) -> list[Any]:
        """The items of one page."""
        items: list[Any] = (await call).items
        return items


SCENARIOS: Scenarios[Caller] = Scenarios()
scenario = SCENARIOS.register


def report(url: str, face: str, key: str) -> str:
    """Run every scenario that is registered, through the face `sync` or `async`."""
    root = client.Honcho(base_url=url, api_key=key)
    methods = methods_of(root.apps, "apps.") | methods_of(root.keys, "keys.")
    return SCENARIOS.report("honcho-ai", lambda: Caller(url, key, face == "async"), methods)
