"""Scenarios are written once and run through both faces of the client, the plain one and `.aio`."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any

import honcho as client  # type: ignore[import-not-found]  # installed in the client's own environment only

from support.clients import harness
from support.clients.harness import PATIENCE as PATIENCE
from support.clients.harness import Scenarios, awaited
from support.clients.harness import contents as contents
from support.clients.harness import ids as ids


class _Methods:
    """The methods of one of the client's objects, each to be awaited."""

    def __init__(self, thing: Any, asynchronous: bool) -> None:
        self._target = thing.aio if asynchronous else thing
        self._kind = type(thing).__name__

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        return awaited(getattr(self._target, name), f"{self._kind}.{name}")


class Caller(harness.Caller):
    """How a scenario calls the client: `await c(peer).search("…")`."""

    def __init__(self, url: str, asynchronous: bool) -> None:
        super().__init__(asynchronous)
        self.url = url

    def __call__(self, thing: Any) -> Any:
        return _Methods(thing, self.asynchronous)

    def honcho(self, workspace: str | None = None) -> Any:
        """A client of a workspace of its own. It retries nothing: a server error must show."""
        return client.Honcho(
            base_url=self.url,
            workspace_id=workspace or self.name("w"),
            max_retries=0,
            timeout=30.0,
        )

    async def talk(self, session: Any, *lines: tuple[Any, str]) -> list[Any]:
        """Store a conversation: (peer, text) in order."""
        stored: list[Any] = await self(session).add_messages(
            [peer.message(text) for peer, text in lines]
        )
        assert [(m.peer_id, m.content) for m in stored] == [(peer.id, text) for peer, text in lines]
        return stored

    async def settled(self, honcho: Any) -> Any:
        """Wait until no work is left in the workspace; returns the status."""

        async def done() -> Any:
            status = await self(honcho).queue_status()
            return None if status.pending_work_units + status.in_progress_work_units else status

        return await self.until(done)


SCENARIOS: Scenarios[Caller] = Scenarios()
scenario = SCENARIOS.register

KINDS = (
    "Honcho",
    "Peer",
    "Session",
    "Scope",
    "ConclusionScope",
    "ConclusionsView",
    "WorkspaceConclusions",
)
"""The client's classes that talk to a server, in whatever version."""


def methods() -> dict[str, list[str]]:
    """Every public method of the client that talks to a server, with its parameters, as
    `Session.search(limit)`."""
    kinds = {
        kind.__name__: kind for name in KINDS if (kind := getattr(client, name, None)) is not None
    }
    return {
        (full := f"{kind.__name__}.{name}"): [
            f"{full}({parameter})" for parameter in list(inspect.signature(member).parameters)[1:]
        ]
        for kind in kinds.values()
        for base in kind.__mro__
        if base.__module__.startswith("honcho.")
        for name, member in vars(base).items()
        if inspect.isfunction(member) and not name.startswith(("_", "model_"))
    }


def report(url: str, face: str) -> str:
    """Run every scenario that is registered against a server, through the face `sync` or
    `async`."""
    names = methods()
    parameters = [parameter for of_method in names.values() for parameter in of_method]
    return SCENARIOS.report("honcho-ai", lambda: Caller(url, face == "async"), {*names}, parameters)
