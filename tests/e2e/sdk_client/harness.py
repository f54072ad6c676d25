"""Scenarios for the last client library of the second generation, through its plain and its asynchronous classes."""

from __future__ import annotations

import asyncio
import inspect
import json
import traceback
import uuid
from collections.abc import Awaitable, Callable
from importlib.metadata import version
from typing import Any

import honcho as client  # type: ignore[import-not-found]  # installed in the client's own environment only

CALLED: set[str] = set()
"""Every method that was called, as `Session.search`, whichever of the two classes it was called on."""


class _Methods:
    """The methods of one of the client's objects, each to be awaited."""

    def __init__(self, thing: Any) -> None:
        self._thing = thing

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        method = getattr(self._thing, name)
        CALLED.add(f"{type(self._thing).__name__.removeprefix('Async')}.{name}")

        async def call(*args: Any, **options: Any) -> Any:
            result = method(*args, **options)
            return await result if inspect.isawaitable(result) else result

        return call


class Caller:
    """How a scenario calls the client: `await c(peer).search("…")`."""

    def __init__(self, url: str, key: str, asynchronous: bool) -> None:
        self._url, self._key, self._asynchronous = url, key, asynchronous
        self.workspace = f"w-{uuid.uuid4().hex[:12]}"

    def __call__(self, thing: Any) -> Any:
        return _Methods(thing)

    def honcho(self, workspace: str | None = None) -> Any:
        """A client of a workspace of its own. It retries nothing: a server error must show."""
        kind = client.AsyncHoncho if self._asynchronous else client.Honcho
        return kind(base_url=self._url, api_key=self._key, workspace_id=workspace or self.workspace, max_retries=0, timeout=30.0)

    async def every(self, page: Any) -> list[Any]:
        """All items, from this page on to the last; or all pieces of a stream."""
        return [item async for item in page] if self._asynchronous else list(page)

    async def raises(self, name: str, call: Awaitable[Any]) -> None:
        """Look that the call raises an error of the class of this name."""
        try:
            result = await call
        except Exception as error:  # its class is what is looked at
            raised = error
        else:
            raise AssertionError(f"{name} was not raised, the answer was {result!r}")
        assert type(raised).__name__ == name, f"{type(raised).__name__} instead of {name}: {raised}"


Scenario = Callable[[Caller], Awaitable[None]]
SCENARIOS: dict[str, Scenario] = {}


def scenario(function: Scenario) -> Scenario:
    """Register a scenario by its name."""
    name = getattr(function, "__name__", "")
    assert name not in SCENARIOS
    SCENARIOS[name] = function
    return function


def methods() -> set[str]:
    """Every public method of the client's classes."""
    return {
        f"{kind.__name__}.{name}"
        for kind in (client.Honcho, client.Peer, client.Session, client.ObservationScope)
        for name, member in vars(kind).items()
        if inspect.isfunction(member) and not name.startswith(("_", "model_"))
    }


def report(url: str, face: str, key: str) -> str:
    """Run every scenario that is registered, through the face `sync` or `async`. Returns a JSON object, as the other harnesses do."""
    results = asyncio.run(_run(url, face == "async", key))
    return json.dumps({"client": version("honcho-ai"), "scenarios": results, "uncalled": sorted(methods() - CALLED)})


async def _run(url: str, asynchronous: bool, key: str) -> dict[str, Any]:
    results = {}
    for name, run in SCENARIOS.items():
        failure = None
        try:
            await asyncio.wait_for(run(Caller(url, key, asynchronous)), 60)
        except Exception:  # whatever went wrong is the result of this scenario, and the others still run
            failure = traceback.format_exc()
        results[name] = {"failure": failure}
    return results
