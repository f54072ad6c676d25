"""What the scenarios of all published Python clients share. It runs in each client's own
environment, and imports none."""

from __future__ import annotations

import asyncio
import inspect
import json
import time
import traceback
import uuid
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from importlib.metadata import version
from typing import Any, Generic, TypeVar

CALLED: set[str] = set()
"""Every method of the client that was called, as `Session.search` or `workspaces.peers.list`."""
GIVEN: set[str] = set()
"""Every parameter that a method was called with, as `Session.search(limit)`."""
PATIENCE = 40.0
"""Seconds after which something that has to happen is said not to happen."""
SECONDS = 90.0
"""For one scenario."""


def awaited(method: Callable[..., Any], name: str) -> Callable[..., Awaitable[Any]]:
    """A method of the plain or of the asynchronous face of a client, to be awaited in either case,
    and counted as called."""
    CALLED.add(name)

    async def call(*args: Any, **options: Any) -> Any:
        GIVEN.update(f"{name}({parameter})" for parameter in parameters_of(method, args, options))
        result = method(*args, **options)
        return await result if inspect.isawaitable(result) else result

    return call


def parameters_of(
    method: Callable[..., Any], args: Sequence[Any], options: Mapping[str, Any]
) -> list[str]:
    """The names of the parameters that a call gives."""
    try:
        return list(inspect.signature(method).bind(*args, **options).arguments)
    except TypeError:  # it does not fit, which the method itself says better
        return []


class Caller:
    """What a scenario calls a client through."""

    def __init__(self, asynchronous: bool) -> None:
        self.asynchronous = asynchronous
        self.notes: dict[str, Any] = {}
        """Figures that the scenario wants reported."""

    def name(self, prefix: str) -> str:
        """A workspace of one scenario."""
        return f"{prefix}-{uuid.uuid4().hex[:12]}"

    async def every(self, page: Any) -> list[Any]:
        """All items, from this page on to the last; or all pieces of a stream."""
        return [item async for item in page] if self.asynchronous else list(page)

    async def until(self, look: Callable[[], Awaitable[Any]]) -> Any:
        """What `look` gives as soon as it is something."""
        deadline = time.monotonic() + PATIENCE
        while not (result := await look()):
            assert time.monotonic() < deadline, "it does not come about"
            await asyncio.sleep(0.05)
        return result

    async def raises(self, error: type[Exception] | str, call: Awaitable[Any]) -> Any:
        """The error that the call raises, which must be of this very class, or of the class of this
        name."""
        name = error if isinstance(error, str) else error.__name__
        try:
            result = await call
        except Exception as caught:  # its class is what is looked at
            raised = caught
        else:
            raise AssertionError(f"{name} was not raised, the answer was {result!r}")
        same = type(raised).__name__ == name if isinstance(error, str) else type(raised) is error
        assert same, f"{type(raised).__name__} instead of {name}: {raised}"
        return raised


C = TypeVar("C", bound=Caller)


class Scenarios(Generic[C]):
    """The scenarios of one client, by name."""

    def __init__(self) -> None:
        self._named: dict[str, Callable[[C], Awaitable[None]]] = {}

    def register(self, function: Callable[[C], Awaitable[None]]) -> Callable[[C], Awaitable[None]]:
        """To be used as a decorator, by the name `scenario`: `runs.scenarios` looks for that."""
        name = getattr(function, "__name__", "")
        assert name not in self._named
        self._named[name] = function
        return function

    def report(
        self,
        package: str,
        caller: Callable[[], C],
        methods: set[str],
        parameters: Collection[str] = (),
    ) -> str:
        """Run every scenario, each with a caller of its own. Returns a JSON object.

        It has the version of the client's package, those of its methods that no scenario calls,
        those of the parameters that none gives, and by scenario the seconds it took, its notes, and
        how it failed (null if it did not).
        """
        results = asyncio.run(self._run(caller))
        missing = {"uncalled": sorted(methods - CALLED), "ungiven": sorted({*parameters} - GIVEN)}
        return json.dumps({"client": version(package), "scenarios": results, **missing})

    async def _run(self, caller: Callable[[], C]) -> dict[str, Any]:
        results = {}
        for name, run in self._named.items():
            mine = caller()
            began = time.monotonic()
            failure = None
            try:
                await asyncio.wait_for(run(mine), SECONDS)
            except (
                Exception
            ):  # whatever went wrong is the result of this scenario, and the others still run
                failure = traceback.format_exc()
            results[name] = {
                "seconds": round(time.monotonic() - began, 3),
                "failure": failure,
                "notes": mine.notes,
            }
        return results


def ids(items: Sequence[Any]) -> list[str]:
    return [item.id for item in items]


def contents(items: Sequence[Any]) -> list[str]:
    return [item.content for item in items]


class Resource:
    """Methods of a generated client's resource, each to be awaited, and the resources within it. Of
    several names the client's own."""

    def __init__(self, target: Any, path: str) -> None:
        self._target, self._path = target, path

    def __getattr__(self, name: str) -> Any:
        return self.any(name)

    def any(self, *names: str) -> Any:
        name = next(name for name in names if hasattr(self._target, name))
        member = getattr(self._target, name)
        path = f"{self._path}{name}"
        return Resource(member, f"{path}.") if is_resource(member) else awaited(member, path)

    async def streamed(self, name: str, *args: Any, **options: Any) -> tuple[str, str]:
        """The content type and the text of an answer that is read as it comes."""
        with_streams = getattr(self._target.with_streaming_response, name)(*args, **options)
        if hasattr(with_streams, "__aenter__"):
            async with with_streams as answer:
                return answer.headers["content-type"], "".join(
                    [text async for text in answer.iter_text()]
                )
        with with_streams as answer:
            return answer.headers["content-type"], "".join(answer.iter_text())


def is_resource(thing: Any) -> bool:
    """Whether it is a resource of a generated client, plain or asynchronous."""
    return any(
        kind.__name__ in ("SyncAPIResource", "AsyncAPIResource") for kind in type(thing).__mro__
    )


def methods_of(resource: Any, path: str = "") -> set[str]:
    """Every method of a generated client's resource and of those within it, as
    `workspaces.peers.list`."""
    names: set[str] = set()
    for name in dir(type(resource)):
        if name.startswith(("_", "with_")):
            continue
        member = getattr(resource, name)
        if is_resource(member):
            names |= methods_of(member, f"{path}{name}.")
        elif is_resource(resource) and callable(member):
            names.add(f"{path}{name}")
    return names
