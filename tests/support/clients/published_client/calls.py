"""Calls of the published client, one after another, in one process:
`python -m support.clients.published_client.calls URL`.

Reads a JSON object a line, with `call`, `key`, `workspace` and the arguments of the call, and
prints one: `result`, or `error` with the class of what the client raised.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from typing import Any

from honcho import Honcho  # type: ignore[import-not-found]  # installed in the client's own environment only


def say(memory: Any, session: str, messages: Sequence[tuple[str, str]]) -> int:
    """Store messages, as pairs of author and content."""
    talk = memory.session(session)
    peers = {name: memory.peer(name) for name, _ in messages}
    return len(talk.add_messages([peers[name].message(content) for name, content in messages]))


def context(memory: Any, session: str, tokens: int, target: str) -> dict[str, Any]:
    """The parts of a session's context."""
    parts = memory.session(session).context(tokens=tokens, peer_target=target)
    return {
        "messages": [message.content for message in parts.messages],
        "summary": parts.summary.content if parts.summary else None,
        "representation": parts.peer_representation,
        "card": parts.peer_card,
    }


def queue(memory: Any) -> dict[str, int]:
    """The background work of the workspace."""
    status = memory.queue_status()
    return {
        "pending": status.pending_work_units,
        "in_progress": status.in_progress_work_units,
    }


CALLS: dict[str, Callable[..., Any]] = {"say": say, "context": context, "queue": queue}


def main(url: str) -> None:
    for line in sys.stdin:
        request = json.loads(line)
        call, key, workspace = (request.pop(name) for name in ("call", "key", "workspace"))
        memory = Honcho(base_url=url, workspace_id=workspace, api_key=key, max_retries=0)
        try:
            answer = {"result": CALLS[call](memory, **request)}
        except Exception as error:  # its class is the result
            answer = {"error": type(error).__name__}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
