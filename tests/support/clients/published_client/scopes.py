"""Scopes: sets of sessions with a memory of their own."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from honcho.http.exceptions import ConflictError, NotFoundError, UnprocessableEntityError  # type: ignore[import-not-found]  # installed in the client's own environment only

from support.clients.published_client.harness import PATIENCE, Caller, contents, ids, scenario

GOATS = "I keep seven goats on the island."
KNEE = "My left knee hurts since the marathon."
CHOIR = "I sing alto in the cathedral choir."


def lines(text: str) -> list[str]:
    """The statements of a representation, without their times."""
    return [line.split("] ", 1)[1] for line in text.splitlines() if line.startswith("[")]


async def copied(c: Caller, scope: Any, states: dict[str, str]) -> dict[str, Any]:
    """The scope's status once its sessions are in these states."""
    deadline = time.monotonic() + PATIENCE
    while True:
        status: dict[str, Any] = await c(scope).status()
        if {name: job.state for name, job in status.items()} == states:
            return status
        assert time.monotonic() < deadline, f"the copying does not end: {status}"
        await asyncio.sleep(0.05)


async def conversation(c: Caller) -> tuple[Any, dict[str, Any]]:
    """Three sessions of alice, each with a fact of its own."""
    honcho = c.honcho()
    alice = await c(honcho).peer("alice")
    talks = {name: await c(honcho).session(name) for name in ("farm", "clinic", "choir")}
    for session, fact in zip(talks.values(), (GOATS, KNEE, CHOIR), strict=True):
        await c.talk(session, (alice, fact))
    await c.settled(honcho)
    return honcho, {"alice": alice, **talks}


@scenario
async def scopes_are_made_found_and_listed(c: Caller) -> None:
    honcho = c.honcho()
    scopes = [
        await c(honcho).scope(f"scope{number}", metadata={"number": number}) for number in range(3)
    ]
    assert [(scope.id, scope.metadata) for scope in scopes] == [
        (f"scope{number}", {"number": number}) for number in range(3)
    ]
    again = await c(honcho).scope("scope1")
    assert (again.metadata, again.created_at) == ({"number": 1}, scopes[1].created_at)
    assert (await c(honcho).scope("scope1", metadata={"new": True})).metadata == {"new": True}
    one = await c(honcho).get_scope("scope1")
    assert (one.id, one.metadata, one.created_at) == (
        "scope1",
        {"new": True},
        scopes[1].created_at,
    )
    error = await c.raises(NotFoundError, c(honcho).get_scope("typo"))
    assert "typo" in error.message
    page = await c(honcho).scopes(size=2)
    assert (page.total, page.pages, ids(page.items)) == (3, 2, ["scope0", "scope1"])
    assert ids(await c.every(page)) == ids(scopes)
    assert ids(await c.every(await c(honcho).scopes(size=2, reverse=True))) == ids(scopes)[::-1]
    assert (await c(honcho).peers()).total == 0, "a scope is no peer"
    await c.raises(UnprocessableEntityError, c(honcho).peer("scope.scope1"))
    assert (await c(c.honcho()).scopes()).total == 0


@scenario
async def sessions_enter_and_leave_a_scope(c: Caller) -> None:
    honcho = c.honcho()
    scope, other = await c(honcho).scope("both"), await c(honcho).scope("other")
    await c(honcho).session("b")
    a = await c(honcho).session("a")
    await c(honcho).session("new", scopes=["both", "made-by-it"])
    assert ids(await c.every(await c(scope).sessions())) == ["new"]
    assert (await c(honcho).get_scope("made-by-it")).id == "made-by-it"
    await c(scope).add_sessions(["b", a])
    await c(scope).add_sessions([a])
    assert set(ids(await c.every(await c(scope).sessions(size=1)))) == {"new", "a", "b"}
    first = ids(await c.every(await c(scope).sessions()))
    assert (first[0], len(first)) == ("new", 3), "who is in it longest comes first"
    assert ids(await c.every(await c(scope).sessions(reverse=True))) == first[::-1]
    assert (await c(other).sessions()).total == 0
    await c.raises(NotFoundError, c(scope).add_sessions(["a", "nowhere"]))
    await c.raises(NotFoundError, c(scope).remove_session("nowhere"))
    await c(scope).remove_session("b")
    await c(scope).remove_session("b")
    await c(scope).remove_session(a)
    assert ids(await c.every(await c(scope).sessions())) == ["new"]
    assert await c(a).peers() == [], "a scope is no member that anybody sees"


@scenario
async def a_scope_recalls_its_sessions_only(c: Caller) -> None:
    honcho, at = await conversation(c)
    scope = await c(honcho).scope("private")
    await c(scope).add_sessions([at["farm"], at["clinic"]])
    status = await copied(c, scope, {"farm": "completed", "clinic": "completed"})
    assert {name: job.docs_copied for name, job in status.items()} == {"farm": 1, "clinic": 1}
    alice = at["alice"]
    assert lines(await c(alice).representation()) == [GOATS, KNEE, CHOIR]
    assert lines(await c(alice).representation(scope=scope)) == [GOATS, KNEE]
    assert lines(await c(alice).representation(scope=["private"])) == [GOATS, KNEE]
    assert {
        m.session_id for m in await c(honcho).search("goats knee choir", scope="private", limit=50)
    } == {"farm", "clinic"}
    context = await c(at["farm"]).context(peer_target="alice", scope=scope)
    assert lines(context.peer_representation) == [GOATS, KNEE]
    for call in (
        c(alice).representation(scope="nowhere"),
        c(honcho).search("goats", scope="nowhere"),
    ):
        await c.raises(NotFoundError, call)

    await c.talk(at["clinic"], (alice, "I take two pills every evening."))
    await c.settled(honcho)
    assert lines(await c(alice).representation(scope=scope)) == [
        GOATS,
        KNEE,
        "I take two pills every evening.",
    ], "it hears what follows"
    assert contents(await c.every(await c(alice.conclusions).list(session="clinic"))) == [
        "I take two pills every evening.",
        KNEE,
    ], "a scope's copies are not the peer's own"

    await c(scope).remove_session("clinic")
    await c.settled(honcho)
    await copied(c, scope, {"farm": "completed"})
    assert lines(await c(alice).representation(scope=scope)) == [GOATS]
    assert KNEE in await c(alice).representation(), "the peer forgets nothing"


@scenario
async def a_scope_is_spoken_of_by_its_name_alone(c: Caller) -> None:
    honcho, at = await conversation(c)
    await c(honcho).scope("private")
    session = at["farm"]
    for call in (
        c(session).add_peers("scope.private"),
        c(at["alice"]).set_card(["x"], target="scope.private"),
        c(session).add_messages({"peer_id": "scope.private", "content": "x"}),
        c(at["alice"]).representation(target="scope.private"),
    ):
        error = await _refused(call)
        assert isinstance(error, UnprocessableEntityError | ConflictError), repr(error)


async def _refused(call: Any) -> Exception:
    """What the call raises."""
    try:
        await call
    except Exception as error:
        return error
    raise AssertionError("it was not refused")
