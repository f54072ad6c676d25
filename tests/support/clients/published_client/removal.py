"""Cloning sessions, and deleting sessions and workspaces with all that is in them."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from honcho.api_types import SessionConfiguration, SessionPeerConfig, SummaryConfiguration  # type: ignore[import-not-found]
from honcho.http.exceptions import ConflictError, NotFoundError  # type: ignore[import-not-found]

from support.clients.published_client.harness import PATIENCE, Caller, contents, ids, scenario

BEES = "I keep bees behind the old mill."
BOAT = "I sold my boat to a fisherman."


@scenario
async def a_clone_is_a_copy_of_its_own(c: Caller) -> None:
    honcho = c.honcho()
    alice = await c(honcho).peer("alice")
    session = await c(honcho).session(
        "talk",
        metadata={"topic": "tea"},
        configuration=SessionConfiguration(summary=SummaryConfiguration(enabled=False)),
        peers=[alice, ("bob", SessionPeerConfig(observe_others=True)), "gone"],
    )
    await c(session).remove_peers("gone")
    stored = await c(session).add_messages(
        [alice.message("one", metadata={"n": 1}), alice.message("two"), alice.message("three")]
    )
    await c.settled(honcho)
    clone = await c(session).clone()
    assert clone.id != "talk"
    assert clone.uid not in (None, session.uid)
    assert (clone.metadata, clone.is_active) == ({"topic": "tea"}, True)
    assert (await c(clone).get_configuration()).summary.enabled is False
    copies = await c.every(await c(clone).messages())
    assert [(m.content, m.peer_id, m.metadata, m.token_count) for m in copies] == [
        (m.content, m.peer_id, m.metadata, m.token_count) for m in stored
    ]
    assert not set(ids(copies)) & set(ids(stored))
    assert {m.session_id for m in copies} == {clone.id}
    assert set(ids(await c(clone).peers())) == {"alice", "bob"}, "who had left is not back"
    assert (await c(clone).get_peer_configuration("bob")).observe_others is True

    part = await c(session).clone(message_id=stored[1].id)
    assert contents(await c.every(await c(part).messages())) == ["one", "two"]
    await c.talk(part, (alice, "four"))
    assert contents(await c.every(await c(session).messages())) == ["one", "two", "three"], (
        "the source stays as it is"
    )
    assert set(ids(await c.every(await c(honcho).sessions()))) == {"talk", clone.id, part.id}
    await c.raises(NotFoundError, c(session).clone(message_id="x" * 21))
    empty = await c(await c(honcho).session("empty", peers=["alice"])).clone()
    assert ((await c(empty).messages()).total, ids(await c(empty).peers())) == (0, ["alice"])


@scenario
async def a_deleted_session_is_gone_with_what_was_learnt_from_it(c: Caller) -> None:
    honcho = c.honcho()
    alice = await c(honcho).peer("alice")
    keep, drop = await c(honcho).session("keep"), await c(honcho).session("drop")
    await c.talk(keep, (alice, BEES))
    await c.talk(drop, (alice, BOAT))
    await c.settled(honcho)
    await c(alice).set_card(["Name: Alice"])
    (free,) = await c(alice.conclusions).create([{"content": "Alice is patient."}])
    await c(drop).delete()
    await c.raises(NotFoundError, c(drop).delete())
    assert ids(await c.every(await c(honcho).sessions())) == ["keep"], "at once"

    async def remaining() -> list[str]:
        return contents(await c.every(await c(alice.conclusions).list(reverse=True)))

    await _until(c, remaining, [BEES, free.content])
    assert BOAT not in contents(await c(honcho).search("sold the boat to a fisherman", limit=50))
    assert await c(alice).get_card() == ["Name: Alice"]
    assert contents(await c.every(await c(keep).messages())) == [BEES]

    async def anew() -> bool:
        try:
            return bool((await c(honcho).session("drop")).uid != drop.uid)
        except NotFoundError:
            return False  # its name is not free yet

    await _until(c, anew, True)
    assert (await c(await c(honcho).session("drop")).messages()).total == 0


@scenario
async def a_workspace_is_deleted_when_it_has_no_sessions(c: Caller) -> None:
    honcho, other = c.honcho(), c.honcho()
    name = honcho.workspace_id
    session = await c(honcho).session("talk", peers=["alice"])
    await c(honcho).set_metadata({"plan": "gold"})
    await c(other).set_metadata({"other": True})
    error = await c.raises(ConflictError, c(honcho).delete_workspace(name))
    assert error.status == 409
    assert (await c(honcho).workspaces({"id": name})).total == 1
    await c(session).delete()
    await c(honcho).delete_workspace(name)

    async def listed() -> int:
        total: int = (await c(other).workspaces({"id": name})).total
        return total

    await _until(c, listed, 0)
    await c.raises(NotFoundError, c(honcho).delete_workspace(name))
    fresh = c.honcho(name)
    assert await c(fresh).get_metadata() == {}
    assert (await c(fresh).peers()).total == (await c(fresh).sessions()).total == 0
    assert await c(c.honcho(other.workspace_id)).get_metadata() == {"other": True}
    await c.raises(NotFoundError, c(other).delete_workspace(c.name("never")))


async def _until(c: Caller, look: Any, expected: Any) -> None:
    """Until `look` finds what is expected."""
    deadline = time.monotonic() + PATIENCE
    while (current := await look()) != expected:
        assert time.monotonic() < deadline, f"{current!r} instead of {expected!r}"
        await asyncio.sleep(0.05)
