"""Scopes, copies, deletions and dreams: what happens to whole sessions and workspaces."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from honcho.http.exceptions import ConflictError, NotFoundError  # type: ignore[import-not-found]  # in the client's own environment

from e2e.published_client.harness import PATIENCE, Caller, contents, ids, scenario

HOME = "I water the ferns on Sundays."
WORK = "I repair clocks in a shop in Ghent."


async def until(look: Any) -> None:
    """Wait until `await look()` is true."""
    deadline = time.monotonic() + PATIENCE
    while not await look():
        assert time.monotonic() < deadline, "it did not happen"
        await asyncio.sleep(0.05)


async def two_sessions(c: Caller) -> tuple[Any, Any, Any, Any]:
    honcho = c.honcho()
    alice = await c(honcho).peer("alice")
    home, work = await c(honcho).session("home"), await c(honcho).session("work")
    await c.talk(home, (alice, HOME))
    await c.talk(work, (alice, WORK))
    await c.settled(honcho)
    return honcho, alice, home, work


@scenario
async def a_scope_knows_what_was_said_in_its_sessions(c: Caller) -> None:
    honcho, alice, home, _ = await two_sessions(c)
    scope = await c(honcho).scope("private", metadata={"colour": "green"})
    assert (scope.id, scope.metadata) == ("private", {"colour": "green"})
    await c(honcho).scope("empty")
    assert ids(await c.every(await c(honcho).scopes())) == ["private", "empty"]
    assert (await c(honcho).get_scope("private")).metadata == {"colour": "green"}
    await c.raises(NotFoundError, c(honcho).get_scope("nothing"))
    assert ids(await c.every(await c(honcho).peers())) == ["alice"], "a scope is no peer"

    await c(scope).add_sessions([home])
    await c.raises(NotFoundError, c(scope).add_sessions(["home", "nowhere"]))
    assert ids(await c.every(await c(scope).sessions())) == ["home"]

    async def copied() -> bool:
        status = await c(scope).status()
        return [(name, job.state, job.docs_copied) for name, job in status.items()] == [("home", "completed", 1)]

    await until(copied)
    known = await c(alice).representation(scope="private")
    assert HOME in known
    assert WORK not in known
    assert contents(await c(honcho).search("ferns clocks", scope="private")) == [HOME]
    context = await c(home).context(peer_target="alice", scope=scope)
    assert HOME in context.peer_representation
    assert WORK not in context.peer_representation
    await c.talk(home, (alice, "I bake bread."))
    await c.settled(honcho)
    assert "I bake bread." in await c(alice).representation(scope=["private"])

    later = await c(honcho).session("later", scopes=["private"])
    assert set(ids(await c.every(await c(scope).sessions()))) == {"home", "later"}
    await c(scope).remove_session(home)
    assert ids(await c.every(await c(scope).sessions())) == [later.id]

    async def forgotten() -> bool:
        return HOME not in await c(alice).representation(scope="private")

    await until(forgotten)
    assert HOME in await c(alice).representation()


@scenario
async def a_session_is_cloned(c: Caller) -> None:
    honcho = c.honcho()
    alice, bob = await c(honcho).peer("alice"), await c(honcho).peer("bob")
    session = await c(honcho).session("talk", metadata={"topic": "tea"}, peers=[alice, bob])
    stored = await c.talk(session, (alice, "First."), (bob, "Second."), (alice, "Third."))
    copy = await c(session).clone()
    assert copy.id != "talk"
    assert await c(copy).get_metadata() == {"topic": "tea"}
    copied = await c.every(await c(copy).messages())
    assert [(m.peer_id, m.content, m.token_count) for m in copied] == [(m.peer_id, m.content, m.token_count) for m in stored]
    assert not set(ids(copied)) & set(ids(stored))
    assert {peer.id for peer in await c(copy).peers()} == {"alice", "bob"}
    part = await c(session).clone(message_id=stored[1].id)
    assert contents(await c.every(await c(part).messages())) == ["First.", "Second."]
    await c.raises(NotFoundError, c(session).clone(message_id="x" * 21))
    await c.talk(copy, (bob, "Only here."))
    assert (await c(session).messages()).total == 3


@scenario
async def a_deleted_session_is_erased(c: Caller) -> None:
    honcho, alice, home, _ = await two_sessions(c)
    await c(home).delete()
    assert ids(await c.every(await c(honcho).sessions())) == ["work"]
    await c.raises(NotFoundError, c(home).add_messages(alice.message("Too late.")))

    async def erased() -> bool:
        known = await c.every(await c(alice.conclusions).list())
        return contents(known) == [WORK] and HOME not in contents(await c(honcho).search("ferns on Sundays", limit=100))

    await until(erased)

    async def free() -> bool:
        try:
            left: int = (await c(await c(honcho).session("home")).messages()).total
        except NotFoundError:
            return False
        return left == 0

    await until(free)
    assert ids(await c.every(await c(honcho).peers())) == ["alice"]
    assert WORK in await c(alice).representation()


@scenario
async def a_deleted_workspace_is_gone(c: Caller) -> None:
    honcho, _, home, work = await two_sessions(c)
    error = await c.raises(ConflictError, c(honcho).delete_workspace(honcho.workspace_id))
    assert "session" in error.message
    await c(home).delete()
    await c(work).delete()
    await c(honcho).refresh()
    old = honcho.uid
    await c(honcho).delete_workspace(honcho.workspace_id)
    keeper = c.honcho()
    assert await c.every(await c(keeper).workspaces({"id": honcho.workspace_id})) == []
    again = c.honcho(honcho.workspace_id)
    await c(again).refresh()
    assert again.uid != old
    assert await c(again).search("ferns clocks") == []
    assert (await c(again.conclusions).list()).total == 0
    await c.raises(NotFoundError, c(keeper).delete_workspace(c.name("unknown")))


@scenario
async def a_dream_consolidates_and_destroys_nothing(c: Caller) -> None:
    honcho, alice, _, _ = await two_sessions(c)
    before = {x.id for x in await c.every(await c(alice.conclusions).list())}
    await c(honcho).schedule_dream(alice)
    await c.settled(honcho)
    assert before <= {x.id for x in await c.every(await c(alice.conclusions).list())}, "two facts that have nothing to do with each other"
    representation = await c(alice).representation()
    assert HOME in representation
    assert WORK in representation
