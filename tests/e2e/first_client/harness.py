"""Scenarios for the last client of the first generation, through both of its faces."""

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
from honcho._resource import AsyncAPIResource, SyncAPIResource  # type: ignore[import-not-found]

CALLED: set[str] = set()
"""Every method that was called, as `apps.users.list`."""
PATIENCE = 20.0


class _Resource:
    """Methods of the client, each to be awaited."""

    def __init__(self, target: Any, path: str) -> None:
        self._target, self._path = target, path

    def __getattr__(self, name: str) -> Any:
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
    """A client that may do everything, and names that nobody else uses."""

    def __init__(self, url: str, key: str, asynchronous: bool) -> None:
        self._url = url
        self._kind = client.AsyncHoncho if asynchronous else client.Honcho
        self._asynchronous = asynchronous
        self.api = self.with_key(key)

    def with_key(self, key: str, retries: int = 0) -> Any:
        """A client with this key. Unless told otherwise it retries nothing: a server error must show."""
        return _Resource(self._kind(base_url=self._url, api_key=key, max_retries=retries, timeout=30.0), "")

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
        return f"{prefix} {uuid.uuid4().hex[:12]}"

    async def user(self) -> dict[str, str]:
        """A new app and a user in it, by id."""
        app = await self.apps.create(name=self.name())
        return {"app_id": app.id, "user_id": (await self.users.create(app.id, name="Ann B.")).id}

    async def page(self, call: Awaitable[Any]) -> list[Any]:
        """The items of one page."""
        items: list[Any] = (await call).items
        return items

    async def until(self, look: Callable[[], Awaitable[Any]]) -> Any:
        """What `look` gives as soon as it is something."""
        deadline = time.monotonic() + PATIENCE
        while not (found := await look()):
            assert time.monotonic() < deadline, "it does not come"
            await asyncio.sleep(0.05)
        return found

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


def methods(url: str, key: str) -> set[str]:
    """Every method that the client has."""
    root = client.Honcho(base_url=url, api_key=key)
    return _methods(root.apps, "apps.") | _methods(root.keys, "keys.")


def report(url: str, face: str, key: str) -> str:
    """Run every scenario that is registered, through the face `sync` or `async`. Returns a JSON object, as the other harness does."""
    results = asyncio.run(_run(url, face == "async", key))
    return json.dumps({"client": version("honcho-ai"), "scenarios": results, "uncalled": sorted(methods(url, key) - CALLED)})


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
