"""Run every scenario against a server, in the client's environment: `python -m e2e.published_client URL sync|async`.

Prints one JSON object: the client's version, the methods that no scenario calls, and by scenario the seconds it took, its notes, and how
it failed (null if it did not).
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
import traceback
from importlib.metadata import version
from typing import Any

# These register their scenarios.
import e2e.published_client.chat
import e2e.published_client.conclusions
import e2e.published_client.context
import e2e.published_client.dreams
import e2e.published_client.lifecycle
import e2e.published_client.memory
import e2e.published_client.messages
import e2e.published_client.places
import e2e.published_client.removal
import e2e.published_client.scopes
import e2e.published_client.search
import e2e.published_client.uploads  # noqa: F401
from e2e.published_client.harness import CALLED, SCENARIOS, Caller, methods


async def _run(url: str, asynchronous: bool) -> dict[str, Any]:
    results = {}
    for name, scenario in SCENARIOS.items():
        caller = Caller(url, asynchronous)
        began = time.monotonic()
        failure = None
        try:
            await asyncio.wait_for(scenario(caller), 60)
        except Exception:  # whatever went wrong is the result of this scenario, and the others still run
            failure = traceback.format_exc()
        results[name] = {"seconds": round(time.monotonic() - began, 3), "failure": failure, "notes": caller.notes}
    return results


if __name__ == "__main__":
    url, face = sys.argv[1:]
    results = asyncio.run(_run(url, face == "async"))
    print(json.dumps({"client": version("honcho-ai"), "scenarios": results, "uncalled": sorted(methods() - CALLED)}))
