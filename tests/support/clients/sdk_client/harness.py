"""Scenarios for the last client library of the second generation, through its plain and its
asynchronous classes."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any

import honcho as client  # type: ignore[import-not-found]  # installed in the client's own environment only

from support.clients import harness
from support.clients.harness import Scenarios, awaited


class _Methods:
    """The methods of one of the client's objects, each to be awaited."""

    def __init__(self, thing: Any) -> None:
        self._thing = thing

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        return awaited(
            getattr(self._thing, name), f"{type(self._thing).__name__.removeprefix('Async')}.{name}"
        )


class Caller(harness.Caller):
    """How a scenario calls the client: `await c(peer).search("…")`."""

    def __init__(self, url: str, key: str, asynchronous: bool) -> None:
        super().__init__(asynchronous)
        self._url, self._key = url, key
        self.workspace = self.name("w")

    def __call__(self, thing: Any) -> Any:
        return _Methods(thing)

    def honcho(self, workspace: str | None = None) -> Any:
        """A client of a workspace of its own. It retries nothing: a server error must show."""
        kind = client.AsyncHoncho if self.asynchronous else client.Honcho
        return kind(
            base_url=self._url,
            api_key=self._key,
            workspace_id=workspace or self.workspace,
            max_retries=0,
            timeout=30.0,
        )


SCENARIOS: Scenarios[Caller] = Scenarios()
scenario = SCENARIOS.register


def methods() -> set[str]:
    """Every public method of the client's classes."""
    return {
        f"{kind.__name__}.{name}"
        for kind in (client.Honcho, client.Peer, client.Session, client.ObservationScope)
        for name, member in vars(kind).items()
        if inspect.isfunction(member) and not name.startswith(("_", "model_"))
    }


def report(url: str, face: str, key: str) -> str:
    """Run every scenario that is registered, through the face `sync` or `async`."""
    return SCENARIOS.report("honcho-ai", lambda: Caller(url, key, face == "async"), methods())
