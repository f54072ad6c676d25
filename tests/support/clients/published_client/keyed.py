"""What the client raises with several keys:
`python -m support.clients.published_client.keyed URL WORKSPACE OTHER-WORKSPACE`.

Reads a JSON object of keys by name. Prints one of what each may: by name and face, the class of
what was raised per call, null for nothing.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import sys
from collections.abc import Callable
from typing import Any

from honcho import Honcho  # type: ignore[import-not-found]  # installed in the client's own environment only


async def _attempt(call: Callable[[], Any]) -> str | None:
    try:
        result = call()
        if inspect.isawaitable(result):
            await result
    except Exception as error:  # its class is the result
        return type(error).__name__
    return None


async def _outcomes(
    url: str, own: str, other: str, key: str, asynchronous: bool
) -> dict[str, str | None]:
    def client(workspace: str) -> Any:
        honcho = Honcho(base_url=url, workspace_id=workspace, api_key=key, max_retries=0)
        return honcho.aio if asynchronous else honcho

    mine, theirs = client(own), client(other)
    return {
        "own": await _attempt(lambda: mine.peers()),
        "chat": await _attempt(lambda: mine.chat("Who?")),
        "scopes": await _attempt(lambda: mine.scopes()),
        "other": await _attempt(lambda: theirs.peers()),
        "every": await _attempt(lambda: mine.workspaces()),
    }


async def _run(url: str, own: str, other: str) -> dict[str, Any]:
    keys = json.load(sys.stdin)
    return {
        name: {
            face: await _outcomes(url, own, other, key, face == "async")
            for face in ("sync", "async")
        }
        for name, key in keys.items()
    }


if __name__ == "__main__":
    print(json.dumps(asyncio.run(_run(*sys.argv[1:]))))
