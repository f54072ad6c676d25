"""What only the first clients can do."""

from __future__ import annotations

from support.clients.core_client.harness import EARLIEST, Caller, contents, ids, scenario


@scenario
async def a_peer_has_messages_without_a_session(c: Caller) -> None:
    drafts = [
        {"peer_id": "alice", "content": f"number {number}", "metadata": {"number": number}}
        for number in range(3)
    ]
    messages = await c.peers.messages.create("alice", **c.own, messages=drafts)
    assert contents(messages) == ["number 0", "number 1", "number 2"]
    assert ids(await c.every(await c.peers.messages.list("alice", **c.own, size=2))) == ids(
        messages
    )
    assert (
        ids(await c.every(await c.peers.messages.list("alice", **c.own, reverse=True)))
        == ids(messages)[::-1]
    )
    assert ids(
        await c.every(await c.peers.messages.list("alice", **c.own, filter={"number": 1}))
    ) == [messages[1].id]
    assert await c.every(await c.peers.messages.list("bob", **c.own)) == []


@scenario
async def active_sessions_are_listed_alone(c: Caller) -> None:
    for name in ("kept", "gone"):
        await c.sessions.get_or_create(**c.own, id=name, peers={"alice": {}})
    await c.sessions.delete("gone", **c.own)
    active = {"is_active": True} if EARLIEST else {"filter": {"is_active": True}}
    assert ids(await c.every(await c.peers.sessions.list("alice", **c.own, **active))) == ["kept"]
    assert ids(await c.every(await c.sessions.list(**c.own, **active))) == ["kept"]
