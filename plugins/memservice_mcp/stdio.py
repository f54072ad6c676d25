"""The server over stdin and stdout, on a store."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from memservice.runtime import Runtime
from memservice.services.auth import policy
from memservice_mcp import context as contexts
from memservice_mcp.server import server_of


def run(runtime: Runtime, workspace: str | None, peer: str | None) -> None:
    """Serve until stdin ends. Its caller has the rights of the account that runs it, as other
    commands do."""
    context = contexts.for_principal(runtime, policy.principal_of(None), workspace, peer, _no_slot)
    asyncio.run(serve(server_of(runtime.settings.mcp.tools, lambda: context)))


async def serve(server: Server[Any]) -> None:
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


def _no_slot() -> Callable[[], None]:
    """There is one caller, whose calls follow one another."""
    return lambda: None
