"""Workspaces, peers, sessions and messages, as the older client writes and reads them."""

from __future__ import annotations

from typing import Any

from honcho.api_types import (  # type: ignore[import-not-found]  # installed in the client's own environment only
    PeerConfig,
    ReasoningConfiguration,
    SessionConfiguration,
    SessionPeerConfig,
    SummaryConfiguration,
    WorkspaceConfiguration,
)
from honcho.http.exceptions import ConflictError, NotFoundError, UnprocessableEntityError  # type: ignore[import-not-found]

from support.clients.published_client.harness import Caller, contents, ids, scenario

METADATA = {"plan": "gold", "seats": 3, "tags": ["a", "b"], "deep": {"x": None}, "blåbær": "🫐"}


def set_values(configuration: Any) -> dict[str, Any]:
    """A configuration as plain values, without what is unset."""
    values: dict[str, Any] = configuration.model_dump(exclude_none=True)
    return values


@scenario
async def workspaces_are_described_listed_and_deleted(c: Caller) -> None:
    honcho = c.honcho()
    name = honcho.workspace_id
    await c(honcho).set_metadata(METADATA)
    await c(honcho).set_configuration(
        WorkspaceConfiguration(summary=SummaryConfiguration(messages_per_short_summary=12))
    )
    await c(honcho).set_configuration(
        WorkspaceConfiguration(reasoning=ReasoningConfiguration(enabled=False))
    )
    again = c.honcho(name)
    assert await c(again).get_metadata() == METADATA
    both = {"summary": {"messages_per_short_summary": 12}, "reasoning": {"enabled": False}}
    assert set_values(await c(again).get_configuration()) == both
    await c(again).refresh()
    assert again.metadata == METADATA
    assert await c.every(await c(honcho).workspaces({"id": name})) == [name]
    session = await c(honcho).session("talk")
    await c(session).add_messages((await c(honcho).peer("alice")).message("Hello."))
    await c.raises(ConflictError, c(honcho).delete_workspace(name))
    await c(session).delete()
    await c(honcho).delete_workspace(name)
    keeper = c.honcho()
    assert await c.every(await c(keeper).workspaces({"id": name})) == []
    await c.raises(NotFoundError, c(keeper).delete_workspace(name))


@scenario
async def peers_are_described_and_listed(c: Caller) -> None:
    honcho = c.honcho()
    for number in range(5):
        await c(honcho).peer(
            f"p{number}",
            metadata={"number": number},
            configuration=PeerConfig(observe_me=number != 3),
        )
    names = [f"p{number}" for number in range(5)]
    page = await c(honcho).peers(size=2)
    assert (page.total, page.pages, ids(page.items)) == (5, 3, names[:2])
    assert ids(await c.every(page)) == names
    assert ids(await c.every(await c(honcho).peers(size=2, reverse=True))) == names[::-1]
    assert ids((await c(honcho).peers(page=2, size=2)).items) == names[2:4]
    assert (
        ids(await c.every(await c(honcho).peers({"metadata": {"number": {"gte": 3}}}))) == names[3:]
    )
    three = await c(honcho).peer("p3")
    assert await c(three).get_metadata() == {"number": 3}
    assert set_values(await c(three).get_configuration()) == {"observe_me": False}
    await c(three).set_metadata({"name": "Three"})
    await c(three).set_configuration(PeerConfig(observe_me=True))
    await c(three).refresh()
    assert (three.metadata, set_values(three.configuration)) == (
        {"name": "Three"},
        {"observe_me": True},
    )
    assert await c(three).get_card() is None
    assert await c(three).set_card(["Name: Three"]) == ["Name: Three"]
    assert await c(three).card() == await c(three).get_card() == ["Name: Three"]
    assert await c(three).get_card(target="p1") is None
    await c.raises(UnprocessableEntityError, c(honcho).peer("two words"))


@scenario
async def sessions_are_described_listed_and_peopled(c: Caller) -> None:
    honcho = c.honcho()
    alice = await c(honcho).peer("alice")
    names = [f"s{number}" for number in range(4)]
    for name in names:
        await c(honcho).session(name, metadata={"name": name})
    assert ids(await c.every(await c(honcho).sessions(size=3))) == names
    assert ids(await c.every(await c(honcho).sessions(size=3, reverse=True))) == names[::-1]
    assert ids(await c.every(await c(honcho).sessions({"metadata": {"name": "s2"}}))) == ["s2"]
    session = await c(honcho).session(
        "s1", configuration=SessionConfiguration(summary=SummaryConfiguration(enabled=False))
    )
    assert set_values(await c(session).get_configuration()) == {"summary": {"enabled": False}}
    await c(session).set_configuration(
        SessionConfiguration(reasoning=ReasoningConfiguration(enabled=True))
    )
    await c(session).set_metadata({"topic": "tea"})
    await c(session).refresh()
    assert (await c(session).get_metadata(), session.is_active) == ({"topic": "tea"}, True)
    assert set_values(session.configuration) == {
        "summary": {"enabled": False},
        "reasoning": {"enabled": True},
    }

    await c(session).add_peers([alice, ("bob", SessionPeerConfig(observe_others=True)), "carol"])
    assert set(ids(await c(session).peers())) == {"alice", "bob", "carol"}
    await c(session).remove_peers(["carol"])
    assert set(ids(await c(session).peers())) == {"alice", "bob"}
    assert set_values(await c(session).get_peer_configuration("bob")) == {"observe_others": True}
    await c(session).set_peer_configuration("bob", SessionPeerConfig(observe_me=False))
    assert set_values(await c(session).get_peer_configuration("bob")) == {
        "observe_others": True,
        "observe_me": False,
    }
    await c(session).set_peers(["dave", alice])
    assert set(ids(await c(session).peers())) == {"alice", "dave"}
    await c(await c(honcho).session("s3")).add_peers("alice")
    assert ids(await c.every(await c(alice).sessions())) == ["s1", "s3"]
    assert ids(await c.every(await c(alice).sessions(reverse=True, size=1))) == ["s3", "s1"]
    await c.raises(NotFoundError, c(session).get_peer_configuration("nobody"))


@scenario
async def messages_are_stored_listed_cloned_and_deleted(c: Caller) -> None:
    honcho = c.honcho()
    alice, bob = await c(honcho).peer("alice"), await c(honcho).peer("bob")
    session = await c(honcho).session("talk")
    messages = await c.talk(
        session, *[((alice, bob)[number % 2], f"number {number}") for number in range(13)]
    )
    assert contents(await c.every(await c(session).messages(size=5))) == [
        f"number {number}" for number in range(13)
    ]
    assert (
        ids(await c.every(await c(session).messages(size=5, reverse=True))) == ids(messages)[::-1]
    )
    assert (
        ids(await c.every(await c(session).messages(filters={"peer_id": "bob"})))
        == ids(messages)[1::2]
    )
    assert (await c(session).messages(page=3, size=5)).total == 13
    message = await c(session).get_message(messages[4].id)
    assert (message.content, message.token_count, message.created_at) == (
        "number 4",
        messages[4].token_count,
        messages[4].created_at,
    )
    assert (await c(session).update_message(message, {"seen": True})).metadata == {"seen": True}
    assert (await c(session).get_message(message.id)).metadata == {"seen": True}
    await c.raises(NotFoundError, c(session).get_message("x" * 21))
    clone = await c(session).clone(message_id=messages[2].id)
    assert contents(await c.every(await c(clone).messages())) == [
        "number 0",
        "number 1",
        "number 2",
    ]
    await c(session).delete()
    assert ids(await c.every(await c(honcho).sessions())) == [clone.id]
    await c.raises(NotFoundError, c(session).delete())
