"""Scenarios for the generated clients of the second generation, of four versions with different
words, through both of their faces."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import honcho_core as client  # type: ignore[import-not-found]  # installed in the clients' own environments only

from support.clients import harness
from support.clients.harness import Resource, Scenarios, methods_of
from support.clients.harness import contents as contents
from support.clients.harness import ids as ids

VERSION = tuple(int(part) for part in version("honcho-core").split("."))
EARLIEST, EARLY, NEWER = VERSION < (1, 1), VERSION < (1, 3), VERSION >= (1, 9)
FILTERS = "filter" if EARLY else "filters"


class Caller(harness.Caller):
    """An admin client, and a workspace of one scenario."""

    def __init__(self, url: str, key: str, asynchronous: bool) -> None:
        super().__init__(asynchronous)
        self._url = url
        self.workspace = self.name("w")
        self.api = self.with_key(key)
        self.own = {"workspace_id": self.workspace}

    def with_key(self, key: str) -> Any:
        """A client with this key. It retries nothing: a server error must show."""
        kind = client.AsyncHoncho if self.asynchronous else client.Honcho
        return Resource(kind(base_url=self._url, api_key=key, max_retries=0, timeout=30.0), "")

    @property
    def workspaces(self) -> Any:
        return self.api.workspaces

    @property
    def peers(self) -> Any:
        return self.workspaces.peers

    @property
    def sessions(self) -> Any:
        return self.workspaces.sessions

    async def say(self, session: str, *lines: tuple[str, str]) -> list[Any]:
        messages = [{"peer_id": peer, "content": content} for peer, content in lines]
        message_rows: list[Any] = await self.sessions.messages.create(
            session, **self.own, messages=messages
        )
        assert [(item.peer_id, item.content) for item in message_rows] == list(lines)
        return message_rows

    async def search(self, resource: Any, text: str, *args: str, **options: Any) -> list[Any]:
        """Messages as they are found, whatever the client gets them in."""
        bare = EARLIEST or (EARLY and resource._path == "workspaces.")
        query = {"body": text} if bare else {"query": text}
        hits = await resource.search(*args, **query, **options)
        return await self.every(hits) if EARLY else list(hits)

    async def status(self, **options: Any) -> Any:
        """Counts of background work."""
        if NEWER:
            return await self.workspaces.queue.status(self.workspace, **options)
        return await self.workspaces.deriver_status(self.workspace, **options)

    async def settled(self) -> Any:
        """Wait until no work is left; returns the status."""

        async def done() -> Any:
            status = await self.status()
            return None if status.pending_work_units + status.in_progress_work_units else status

        return await self.until(done)


SCENARIOS: Scenarios[Caller] = Scenarios()
scenario = SCENARIOS.register


def report(url: str, face: str, key: str) -> str:
    """Run every scenario that is registered, through the face `sync` or `async`."""
    methods = methods_of(client.Honcho(base_url=url, api_key=key))
    return SCENARIOS.report("honcho-core", lambda: Caller(url, key, face == "async"), methods)
