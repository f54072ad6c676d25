"""Scenarios are written once and run through both faces of the client, the plain one and `.aio`."""

from __future__ import annotations

import asyncio
import inspect
import json
import time
import traceback
import uuid
from collections.abc import Awaitable, Callable, Sequence
from importlib.metadata import version
from typing import Any

import honcho as client  # type: ignore[import-not-found]  # installed in the client's own environment only

CALLED: set[str] = set()
"""Every method that was called, as `Session.search`."""
PATIENCE = 20.0
"""Seconds after which something that has to happen is said not to happen."""


class _Methods:
    """The methods of one of the client's objects, each to be awaited."""

    def __init__(self, thing: Any, asynchronous: bool) -> None:
        self._target = thing.aio if asynchronous else thing
        self._kind = type(thing).__name__

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        method = getattr(self._target, name)
        CALLED.add(f"{self._kind}.{name}")

        async def call(*args: Any, **options: Any) -> Any:
            result = method(*args, **options)
            return await result if inspect.isawaitable(result) else result

        return call


class Caller:
    """How a scenario calls the client: `await c(peer).search("…")`."""

    def __init__(self, url: str, asynchronous: bool) -> None:
        self._url = url
        self._asynchronous = asynchronous
        self.notes: dict[str, Any] = {}
        """Figures that the scenario wants reported."""

    def __call__(self, thing: Any) -> Any:
        return _Methods(thing, self._asynchronous)

    def honcho(self, workspace: str | None = None) -> Any:
        """A client of a workspace of its own. It retries nothing: a server error must show."""
        return client.Honcho(base_url=self._url, workspace_id=workspace or self.name("w"), max_retries=0, timeout=30.0)

    def name(self, prefix: str) -> str:
        return f"{prefix}-{uuid.uuid4().hex[:12]}"

    async def every(self, page: Any) -> list[Any]:
        """All items, from this page on to the last."""
        return [item async for item in page] if self._asynchronous else list(page)

    async def talk(self, session: Any, *said: tuple[Any, str]) -> list[Any]:
        """Store a conversation: (peer, text) in order."""
        stored: list[Any] = await self(session).add_messages([peer.message(text) for peer, text in said])
        assert [(m.peer_id, m.content) for m in stored] == [(peer.id, text) for peer, text in said]
        return stored

    async def settled(self, honcho: Any) -> Any:
        """Wait until no work is left in the workspace; returns the status."""
        deadline = time.monotonic() + PATIENCE
        while True:
            status = await self(honcho).queue_status()
            if status.pending_work_units + status.in_progress_work_units == 0:
                return status
            assert time.monotonic() < deadline, f"the work does not end: {status}"
            await asyncio.sleep(0.05)

    async def raises(self, error: type[Exception], call: Awaitable[Any]) -> Any:
        """The error that the call raises, which must be of this very class."""
        try:
            result = await call
        except error as caught:
            raised = caught
        else:
            raise AssertionError(f"{error.__name__} was not raised, the answer was {result!r}")
        assert type(raised) is error, f"{type(raised).__name__} instead of {error.__name__}: {raised}"
        return raised


Scenario = Callable[[Caller], Awaitable[None]]
SCENARIOS: dict[str, Scenario] = {}


def scenario(function: Scenario) -> Scenario:
    """Register a scenario by its name."""
    name = getattr(function, "__name__", "")
    assert name not in SCENARIOS
    SCENARIOS[name] = function
    return function


KINDS = ("Honcho", "Peer", "Session", "Scope", "ConclusionScope", "ConclusionsView", "WorkspaceConclusions")
"""The client's classes that talk to a server, in whatever version."""


def methods() -> set[str]:
    """Every public method of the client that talks to a server."""
    kinds = {kind.__name__: kind for name in KINDS if (kind := getattr(client, name, None)) is not None}
    return {
        f"{kind.__name__}.{name}"
        for kind in kinds.values()
        for base in kind.__mro__
        if base.__module__.startswith("honcho.")
        for name, member in vars(base).items()
        if inspect.isfunction(member) and not name.startswith(("_", "model_"))
    }


def report(url: str, face: str) -> str:
    """Run every scenario that is registered against a server, through the face `sync` or `async`. Returns a JSON object.

    It has the client's version, the methods that no scenario calls, and by scenario the seconds it took, its notes, and how it failed
    (null if it did not).
    """
    results = asyncio.run(_run(url, face == "async"))
    return json.dumps({"client": version("honcho-ai"), "scenarios": results, "uncalled": sorted(methods() - CALLED)})


async def _run(url: str, asynchronous: bool) -> dict[str, Any]:
    results = {}
    for name, run in SCENARIOS.items():
        caller = Caller(url, asynchronous)
        began = time.monotonic()
        failure = None
        try:
            await asyncio.wait_for(run(caller), 60)
        except Exception:  # whatever went wrong is the result of this scenario, and the others still run
            failure = traceback.format_exc()
        results[name] = {"seconds": round(time.monotonic() - began, 3), "failure": failure, "notes": caller.notes}
    return results


def ids(items: Sequence[Any]) -> list[str]:
    return [item.id for item in items]


def contents(items: Sequence[Any]) -> list[str]:
    return [item.content for item in items]
