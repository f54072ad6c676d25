"""Scenarios for the generated clients of the second generation, of four versions with different words, through both of their faces."""

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

import honcho_core as client  # type: ignore[import-not-found]  # installed in the clients' own environments only
from honcho_core._resource import AsyncAPIResource, SyncAPIResource  # type: ignore[import-not-found]

CALLED: set[str] = set()
"""Every method that was called, as `workspaces.peers.list`."""
PATIENCE = 20.0
VERSION = tuple(int(part) for part in version("honcho-core").split("."))
EARLIEST, EARLY, NEWER = VERSION < (1, 1), VERSION < (1, 3), VERSION >= (1, 9)
FILTERS = "filter" if EARLY else "filters"


class _Resource:
    """Methods of the client, each to be awaited. Of several names the client's own is taken."""

    def __init__(self, target: Any, path: str) -> None:
        self._target, self._path = target, path

    def __getattr__(self, name: str) -> Any:
        return self.any(name)

    def any(self, *names: str) -> Any:
        name = next(name for name in names if hasattr(self._target, name))
        found = getattr(self._target, name)
        path = f"{self._path}{name}"
        if isinstance(found, SyncAPIResource | AsyncAPIResource):
            return _Resource(found, f"{path}.")
        CALLED.add(path)

        async def call(*args: Any, **options: Any) -> Any:
            result = found(*args, **options)
            return await result if inspect.isawaitable(result) else result

        return call

    async def streamed(self, name: str, *args: Any, **options: Any) -> tuple[str, str]:
        """The content type and the text of an answer that is read as it comes."""
        with_streams = getattr(self._target.with_streaming_response, name)(*args, **options)
        if hasattr(with_streams, "__aenter__"):
            async with with_streams as answer:
                return answer.headers["content-type"], "".join([text async for text in answer.iter_text()])
        with with_streams as answer:
            return answer.headers["content-type"], "".join(answer.iter_text())


class Caller:
    """A client that may do everything, and a workspace that nobody else uses."""

    def __init__(self, url: str, key: str, asynchronous: bool) -> None:
        self._url = url
        self._kind = client.AsyncHoncho if asynchronous else client.Honcho
        self._asynchronous = asynchronous
        self.workspace = f"w-{uuid.uuid4().hex[:12]}"
        self.api = self.with_key(key)
        self.own = {"workspace_id": self.workspace}

    def with_key(self, key: str) -> Any:
        """A client with this key. It retries nothing: a server error must show."""
        return _Resource(self._kind(base_url=self._url, api_key=key, max_retries=0, timeout=30.0), "")

    @property
    def workspaces(self) -> Any:
        return self.api.workspaces

    @property
    def peers(self) -> Any:
        return self.workspaces.peers

    @property
    def sessions(self) -> Any:
        return self.workspaces.sessions

    async def every(self, page: Any) -> list[Any]:
        """All items, from this page on to the last."""
        return [item async for item in page] if self._asynchronous else list(page)

    async def say(self, session: str, *said: tuple[str, str]) -> list[Any]:
        messages = [{"peer_id": peer, "content": content} for peer, content in said]
        stored: list[Any] = await self.sessions.messages.create(session, **self.own, messages=messages)
        assert [(item.peer_id, item.content) for item in stored] == list(said)
        return stored

    async def search(self, resource: Any, text: str, *args: str, **options: Any) -> list[Any]:
        """Messages as they are found, whatever the client gets them in."""
        bare = EARLIEST or (EARLY and resource._path == "workspaces.")
        said = {"body": text} if bare else {"query": text}
        found = await resource.search(*args, **said, **options)
        return await self.every(found) if EARLY else list(found)

    async def status(self, **options: Any) -> Any:
        """Counts of background work."""
        if NEWER:
            return await self.workspaces.queue.status(self.workspace, **options)
        return await self.workspaces.deriver_status(self.workspace, **options)

    async def settled(self) -> Any:
        """Wait until no work is left."""
        deadline = time.monotonic() + PATIENCE
        while True:
            status = await self.status()
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


def ids(items: Sequence[Any]) -> list[str]:
    return [item.id for item in items]


def contents(items: Sequence[Any]) -> list[str]:
    return [item.content for item in items]


def _methods(resource: Any, path: str) -> set[str]:
    found: set[str] = set()
    for name in dir(type(resource)):
        if name.startswith(("_", "with_")):
            continue
        member = getattr(resource, name)
        if isinstance(member, SyncAPIResource):
            found |= _methods(member, f"{path}{name}.")
        elif isinstance(resource, SyncAPIResource) and callable(member):
            found.add(f"{path}{name}")
    return found


def report(url: str, face: str, key: str) -> str:
    """Run every scenario that is registered, through the face `sync` or `async`. Returns a JSON object, as the other harness does."""
    results = asyncio.run(_run(url, face == "async", key))
    uncalled = sorted(_methods(client.Honcho(base_url=url, api_key=key), "") - CALLED)
    return json.dumps({"client": version("honcho-core"), "scenarios": results, "uncalled": uncalled})


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
