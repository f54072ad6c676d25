"""Workspaces, peers, sessions and messages."""

from __future__ import annotations

from honcho.session import SessionPeerConfig  # type: ignore[import-not-found]  # installed in the client's own environment only

from support.clients.sdk_client.harness import Caller, scenario

METADATA = {"plan": "gold", "seats": 3, "tags": ["a", "b"], "deep": {"x": None}, "blåbær": "🫐"}


@scenario
async def workspaces_are_described_listed_and_deleted(c: Caller) -> None:
    honcho = c.honcho()
    await c(honcho).set_metadata(METADATA)
    await c(honcho).set_config({"deriver": {"enabled": False}})
    again = c.honcho()
    assert await c(again).get_metadata() == METADATA
    assert await c(again).get_config() == {"deriver": {"enabled": False}}
    await c(again).refresh()
    assert (again.metadata, again.configuration) == (METADATA, {"deriver": {"enabled": False}})
    assert await c(honcho).get_workspaces({"id": c.workspace}) == [c.workspace]
    session = await c(honcho).session("talk")
    peer = await c(honcho).peer("alice")
    await c(session).add_messages([await c(peer).message("Hello.")])
    workspace = await c(honcho).delete_workspace(c.workspace)
    assert (workspace.id, workspace.metadata) == (c.workspace, METADATA)
    assert await c(honcho).get_workspaces({"id": c.workspace}) == []
    await c.raises("NotFoundError", c(honcho).delete_workspace(c.workspace))


@scenario
async def peers_are_described_and_listed(c: Caller) -> None:
    honcho = c.honcho()
    names = [f"p{number}" for number in range(5)]
    for number, name in enumerate(names):
        await c(honcho).peer(name, metadata={"number": number}, config={"observe_me": number != 3})
    assert [peer.id for peer in await c.every(await c(honcho).get_peers())] == names
    peers = await c.every(await c(honcho).get_peers({"metadata": {"number": {"gte": 3}}}))
    assert [peer.id for peer in peers] == names[3:]
    three = await c(honcho).peer("p3")
    assert await c(three).get_metadata() == {"number": 3}
    assert await c(three).get_config() == await c(three).get_peer_config() == {"observe_me": False}
    await c(three).set_metadata({"name": "Three"})
    await c(three).set_config({"observe_me": True})
    await c(three).refresh()
    assert (three.metadata, three.configuration) == ({"name": "Three"}, {"observe_me": True})
    await c(three).set_peer_config({"observe_me": False})
    assert await c(three).get_config() == {"observe_me": False}
    assert not await c(three).card()
    await c.raises("UnprocessableEntityError", c(honcho).peer("two words", metadata={"a": 1}))


@scenario
async def sessions_are_described_listed_and_peopled(c: Caller) -> None:
    honcho = c.honcho()
    alice = await c(honcho).peer("alice", metadata={"known": True})
    names = [f"s{number}" for number in range(4)]
    for name in names:
        await c(honcho).session(name, metadata={"name": name})
    assert [session.id for session in await c.every(await c(honcho).get_sessions())] == names
    sessions = await c.every(await c(honcho).get_sessions({"metadata": {"name": "s2"}}))
    assert [session.id for session in sessions] == ["s2"]
    session = await c(honcho).session("s1", config={"summary": {"enabled": False}})
    await c(session).set_config({"deriver": {"enabled": True}})
    await c(session).set_metadata({"topic": "tea"})
    await c(session).refresh()
    both = {"summary": {"enabled": False}, "deriver": {"enabled": True}}
    assert (
        await c(session).get_metadata(),
        await c(session).get_config(),
        session.configuration,
    ) == ({"topic": "tea"}, both, both)

    await c(session).add_peers([alice, ("bob", SessionPeerConfig(observe_others=True)), "carol"])
    assert {peer.id for peer in await c(session).get_peers()} == {"alice", "bob", "carol"}
    await c(session).remove_peers(["carol"])
    assert (await c(session).get_peer_config("bob")).observe_others is True
    await c(session).set_peer_config(
        "bob", SessionPeerConfig(observe_me=False, observe_others=True)
    )
    assert (await c(session).get_peer_config("bob")).observe_me is False
    await c(session).set_peers(["dave", alice])
    assert {peer.id for peer in await c(session).get_peers()} == {"alice", "dave"}
    assert [session.id for session in await c.every(await c(alice).get_sessions())] == ["s1"]
    await c.raises("NotFoundError", c(session).get_peer_config("nobody"))


@scenario
async def messages_are_stored_listed_cloned_and_deleted(c: Caller) -> None:
    honcho = c.honcho()
    alice, session = await c(honcho).peer("alice"), await c(honcho).session("talk")
    drafts = [
        await c(alice).message(f"number {number}", metadata={"number": number})
        for number in range(60)
    ]
    stored = await c(session).add_messages(drafts)
    rows = await c.every(await c(session).get_messages())
    assert [message.content for message in rows] == [f"number {number}" for number in range(60)], (
        "over more than one page"
    )
    (fourth,) = await c.every(await c(session).get_messages(filters={"metadata": {"number": 4}}))
    assert fourth.id == stored[4].id
    assert (await c(honcho).update_message(fourth, {"seen": True})).metadata == {"seen": True}
    assert (await c(honcho).update_message(fourth.id, {"seen": 2}, session)).metadata == {"seen": 2}
    clone = await c(session).clone(message_id=stored[2].id)
    assert [message.content for message in await c.every(await c(clone).get_messages())] == [
        "number 0",
        "number 1",
        "number 2",
    ]
    await c(session).delete()
    assert [session.id for session in await c.every(await c(honcho).get_sessions())] == [clone.id]
    (uploaded,) = await c(clone).upload_file(
        ("note.txt", b"I like tea.", "text/plain"), "alice", metadata={"from": "phone"}
    )
    assert (uploaded.content, uploaded.peer_id, uploaded.metadata) == (
        "I like tea.",
        "alice",
        {"from": "phone"},
    )
