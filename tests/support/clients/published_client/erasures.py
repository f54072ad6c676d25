"""What the client reads after requests that it has no method for: corrections of conclusions, and
erasures of a message and of a peer."""

from __future__ import annotations

import asyncio
import json
import urllib.request
from typing import Any

from honcho.http.exceptions import NotFoundError  # type: ignore[import-not-found]

from support.clients.published_client.harness import Caller, contents, ids, scenario


async def _send(c: Caller, honcho: Any, method: str, path: str, body: Any = None) -> Any:
    """A request to a path of the workspace, without the client; its answer."""

    def send() -> Any:
        request = urllib.request.Request(
            f"{c.url}/v3/workspaces/{honcho.workspace_id}{path}",
            None if body is None else json.dumps(body).encode(),
            {"Content-Type": "application/json"},
            method=method,
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read())

    return await asyncio.to_thread(send)


@scenario
async def corrected_conclusions_are_read(c: Caller) -> None:
    honcho = c.honcho()
    alice = await c(honcho).peer("alice")
    (old,) = await c(alice.conclusions).create([{"content": "Alice lives in Ghent."}])
    path = "/conclusions/{}".format
    new = await _send(c, honcho, "PUT", path(old.id), {"content": "Alice lives in Bruges."})
    every = await c.every(await c(alice.conclusions).list())
    assert [(row.id, row.content) for row in every] == [(new["id"], "Alice lives in Bruges.")]
    assert contents(await c(alice.conclusions).query("Where does Alice live?")) == [
        "Alice lives in Bruges."
    ]
    representation = str(await c(alice).representation())
    assert ("Bruges" in representation, "Ghent" in representation) == (True, False)
    await c.raises(NotFoundError, c(alice.conclusions).get(old.id))

    await _send(c, honcho, "POST", f"{path(new['id'])}/invalidate", {"reason": "she moved"})
    assert (await c(alice.conclusions).list()).total == 0
    await _send(c, honcho, "POST", f"{path(old.id)}/restore")
    assert ids(await c.every(await c(alice.conclusions).list())) == [old.id]
    history = await _send(c, honcho, "GET", f"{path(old.id)}/history")
    assert [version["id"] for version in history["versions"]] == [old.id]


@scenario
async def an_erased_message_and_an_erased_peer_are_gone(c: Caller) -> None:
    honcho = c.honcho()
    alice, bob = await c(honcho).peer("alice"), await c(honcho).peer("bob")
    session = await c(honcho).session("talk")
    first, *_ = await c.talk(
        session, (alice, "I keep bees."), (bob, "I like tea."), (alice, "I like boats.")
    )
    await c.settled(honcho)
    await _send(c, honcho, "DELETE", f"/sessions/talk/messages/{first.id}")
    assert contents(await c.every(await c(session).messages())) == ["I like tea.", "I like boats."]
    await c.raises(NotFoundError, c(session).get_message(first.id))
    assert "bees" not in str(await c(alice).representation())
    assert contents((await c(session).context()).messages) == ["I like tea.", "I like boats."]

    await _send(c, honcho, "DELETE", "/peers/alice")
    assert contents(await c.every(await c(session).messages())) == ["I like tea."]
    assert ids(await c.every(await c(honcho).peers())) == ["bob"]
    alice = await c(honcho).peer("alice", metadata={"again": True})
    assert contents(await c.every(await c(alice.conclusions).list())) == [], "it starts empty"
