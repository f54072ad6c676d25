"""Workspaces, peers, sessions and members."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from honcho.api_types import (  # type: ignore[import-not-found]  # installed in the client's own environment only
    DreamConfiguration,
    PeerConfig,
    ReasoningConfiguration,
    SessionConfiguration,
    SessionPeerConfig,
    SummaryConfiguration,
    WorkspaceConfiguration,
)
from honcho.http.exceptions import BadRequestError, NotFoundError, UnprocessableEntityError  # type: ignore[import-not-found]

from support.clients.published_client.harness import Caller, ids, scenario

METADATA = {
    "plan": "gold",
    "seats": 3,
    "ratio": 0.5,
    "tags": ["a", "b"],
    "deep": {"er": {"x": None}},
    "blåbær": "🫐",
    "ok": True,
}


def set_values(configuration: Any) -> dict[str, Any]:
    """A configuration as plain values, without what is unset."""
    values: dict[str, Any] = configuration.model_dump(exclude_none=True)
    return values


@scenario
async def workspace_metadata_and_configuration_round_trip(c: Caller) -> None:
    honcho = c.honcho()
    assert await c(honcho).get_metadata() == {}
    assert set_values(await c(honcho).get_configuration()) == {}
    await c(honcho).set_metadata(METADATA)
    assert await c(c.honcho(honcho.workspace_id)).get_metadata() == METADATA
    await c(honcho).set_metadata({"only": 1})
    assert await c(honcho).get_metadata() == {"only": 1}, "metadata is replaced, not merged"
    await c(honcho).set_metadata({})
    assert await c(honcho).get_metadata() == {}

    await c(honcho).set_configuration(
        WorkspaceConfiguration(
            custom_instructions="Be brief.",
            reasoning=ReasoningConfiguration(enabled=False, custom_instructions="Only facts."),
        )
    )
    await c(honcho).set_configuration(
        WorkspaceConfiguration(
            reasoning=ReasoningConfiguration(enabled=True),
            summary=SummaryConfiguration(
                messages_per_short_summary=12, custom_instructions="One line."
            ),
            dream=DreamConfiguration(enabled=False),
        )
    )
    assert set_values(await c(c.honcho(honcho.workspace_id)).get_configuration()) == {
        "custom_instructions": "Be brief.",
        "reasoning": {"enabled": True},
        "summary": {"messages_per_short_summary": 12, "custom_instructions": "One line."},
        "dream": {"enabled": False},
    }, "a section that is sent replaces the stored one, the others stay"


@scenario
async def workspace_keeps_its_uid(c: Caller) -> None:
    honcho = c.honcho()
    await c(honcho).refresh()
    assert len(honcho.uid) == 21
    again = c.honcho(honcho.workspace_id)
    await c(again).set_metadata({"changed": True})
    await c(again).refresh()
    assert again.uid == honcho.uid
    other = c.honcho()
    await c(other).refresh()
    assert other.uid != honcho.uid


@scenario
async def workspaces_are_listed_page_by_page(c: Caller) -> None:
    run = c.name("run")
    names = [c.name(f"listed{number}") for number in range(5)]
    for number, name in enumerate(names):
        await c(c.honcho(name)).set_metadata({"run": run, "number": number})
    honcho = c.honcho(names[0])
    mine = {"metadata": {"run": run}}
    page = await c(honcho).workspaces(mine, size=2)
    assert (page.total, page.page, page.size, page.pages) == (5, 1, 2, 3)
    assert list(page.items) == names[:2]
    assert await c.every(page) == names, "oldest first"
    assert await c.every(await c(honcho).workspaces(mine, size=2, reverse=True)) == names[::-1]
    assert list((await c(honcho).workspaces(mine, page=3, size=2)).items) == names[4:]
    past = await c(honcho).workspaces(mine, page=9, size=2)
    assert (list(past.items), past.total, past.pages) == ([], 5, 3)
    some = {"AND": [mine, {"metadata": {"number": {"gte": 3}}}]}
    assert await c.every(await c(honcho).workspaces(some)) == names[3:]
    assert await c.every(await c(honcho).workspaces({"id": {"in": [names[1], names[4]]}})) == [
        names[1],
        names[4],
    ]


@scenario
async def a_name_outside_the_rules_is_refused(c: Caller) -> None:
    honcho = c.honcho()
    for name in ("two words", "a/b", "é", "x" * 513):
        error = await c.raises(UnprocessableEntityError, c(honcho).peer(name))
        assert [problem["loc"][0] for problem in error.body["detail"]] == ["body"]
        await c.raises(UnprocessableEntityError, c(honcho).session(name))
    assert (await c(honcho).peers()).total == 0
    longest = await c(honcho).peer("x" * 512)
    assert ids(await c.every(await c(honcho).peers())) == [longest.id]


@scenario
async def peer_metadata_and_configuration_round_trip(c: Caller) -> None:
    honcho = c.honcho()
    before = datetime.now(UTC)
    alice = await c(honcho).peer(
        "alice", metadata=METADATA, configuration=PeerConfig(observe_me=False)
    )
    assert (alice.metadata, set_values(alice.configuration)) == (METADATA, {"observe_me": False})
    assert (
        before - timedelta(seconds=5) < alice.created_at < datetime.now(UTC) + timedelta(seconds=5)
    )
    assert len(alice.uid) == 21

    again = await c(honcho).peer("alice")
    assert (again.uid, again.created_at, again.metadata) == (alice.uid, alice.created_at, METADATA)
    await c(again).set_metadata({"name": "Alice"})
    await c(again).set_configuration(PeerConfig(observe_me=True))
    assert await c(alice).get_metadata() == {"name": "Alice"}
    assert set_values(await c(alice).get_configuration()) == {"observe_me": True}
    await c(honcho).peer("alice", metadata={"name": "Alice Doe"})
    await c(alice).refresh()
    assert (alice.metadata, set_values(alice.configuration)) == (
        {"name": "Alice Doe"},
        {"observe_me": True},
    )


@scenario
async def peers_are_listed_and_filtered(c: Caller) -> None:
    honcho = c.honcho()
    for number in range(7):
        await c(honcho).peer(
            f"p{number}",
            metadata={
                "number": number,
                "kind": "even" if number % 2 == 0 else "odd",
                "tags": [number],
            },
        )
    everyone = [f"p{number}" for number in range(7)]
    page = await c(honcho).peers(size=3)
    assert (page.total, page.pages, ids(page.items)) == (7, 3, everyone[:3])
    assert ids(await c.every(page)) == everyone
    assert ids(await c.every(await c(honcho).peers(size=3, reverse=True))) == everyone[::-1]

    async def matching(filters: dict[str, Any]) -> list[str]:
        return ids(await c.every(await c(honcho).peers(filters)))

    assert await matching({"metadata": {"kind": "odd"}}) == ["p1", "p3", "p5"]
    assert await matching({"metadata": {"number": {"gt": 1, "lt": 4}}}) == ["p2", "p3"]
    assert await matching({"metadata": {"tags": [4]}}) == ["p4"]
    assert await matching({"OR": [{"id": "p0"}, {"metadata": {"number": 6}}]}) == ["p0", "p6"]
    assert await matching({"NOT": [{"metadata": {"kind": "even"}}, {"id": "p5"}]}) == ["p1", "p3"]
    assert await matching({"id": {"icontains": "P6"}}) == ["p6"]
    assert await matching({"created_at": {"gte": "2020-01-01"}}) == everyone
    assert await matching({"created_at": {"gt": "2999-01-01"}}) == []
    assert await matching({"id": {"in": []}}) == []
    assert await matching({"id": "*"}) == everyone
    await c.raises(UnprocessableEntityError, matching({"colour": "red"}))
    await c.raises(UnprocessableEntityError, matching({"id": {"like": "p%"}}))
    await c.raises(UnprocessableEntityError, matching({"id": 3}))


@scenario
async def session_metadata_and_configuration_round_trip(c: Caller) -> None:
    honcho = c.honcho()
    session = await c(honcho).session(
        "talk",
        metadata=METADATA,
        configuration=SessionConfiguration(summary=SummaryConfiguration(enabled=False)),
    )
    assert (session.metadata, set_values(session.configuration)) == (
        METADATA,
        {"summary": {"enabled": False}},
    )
    assert session.is_active is True
    assert len(session.uid) == 21

    again = await c(honcho).session("talk")
    assert (again.uid, again.created_at, again.metadata) == (
        session.uid,
        session.created_at,
        METADATA,
    )
    await c(again).set_metadata({"topic": "tea"})
    await c(again).set_configuration(
        SessionConfiguration(reasoning=ReasoningConfiguration(enabled=True))
    )
    assert await c(session).get_metadata() == {"topic": "tea"}
    both = {"summary": {"enabled": False}, "reasoning": {"enabled": True}}
    assert set_values(await c(session).get_configuration()) == both
    await c(session).refresh()
    assert (session.metadata, set_values(session.configuration), session.is_active) == (
        {"topic": "tea"},
        both,
        True,
    )


@scenario
async def sessions_are_listed_and_filtered(c: Caller) -> None:
    honcho = c.honcho()
    names = [f"s{number}" for number in range(4)]
    for number, name in enumerate(names):
        await c(honcho).session(
            name, metadata={"number": number}, peers=["alice"] if number % 2 else ["alice", "bob"]
        )
    assert ids(await c.every(await c(honcho).sessions(size=3))) == names
    assert ids(await c.every(await c(honcho).sessions(size=3, reverse=True))) == names[::-1]
    assert ids(await c.every(await c(honcho).sessions({"metadata": {"number": {"ne": 1}}}))) == [
        "s0",
        "s2",
        "s3",
    ]
    assert ids(await c.every(await c(honcho).sessions({"is_active": False}))) == []
    bob = await c(honcho).peer("bob")
    assert ids(await c.every(await c(bob).sessions())) == ["s0", "s2"]
    assert ids(await c.every(await c(bob).sessions(reverse=True))) == ["s2", "s0"]
    assert ids(await c.every(await c(bob).sessions({"metadata": {"number": 2}}))) == ["s2"]
    stranger = await c(honcho).peer("stranger")
    assert (await c(stranger).sessions()).total == 0


@scenario
async def peers_join_and_leave_a_session(c: Caller) -> None:
    honcho = c.honcho()
    alice, bob = await c(honcho).peer("alice"), await c(honcho).peer("bob")
    session = await c(honcho).session(
        "talk", peers=[alice, ("carol", SessionPeerConfig(observe_others=True))]
    )

    async def members() -> set[str]:
        peer_ids: list[str] = ids(await c(session).peers())
        assert len(peer_ids) == len(set(peer_ids))
        return set(peer_ids)

    assert await members() == {"alice", "carol"}
    await c(session).add_peers([bob, "dave"])
    await c(session).add_peers("alice")
    assert await members() == {"alice", "bob", "carol", "dave"}
    await c(session).remove_peers([alice, "nobody"])
    await c(session).remove_peers("dave")
    assert await members() == {"bob", "carol"}
    await c(session).set_peers(["alice", (bob, SessionPeerConfig(observe_me=False))])
    assert await members() == {"alice", "bob"}
    assert ids(await c.every(await c(honcho).peers())) == ["alice", "bob", "carol", "dave"], (
        "who leaves stays a peer"
    )
    assert "talk" in ids(await c.every(await c(await c(honcho).peer("carol")).sessions()))

    missing = await c(honcho).session("other")
    assert await c(missing).peers() == []


@scenario
async def peer_configuration_within_a_session(c: Caller) -> None:
    honcho = c.honcho()
    session = await c(honcho).session(
        "talk", peers=["alice", ("bob", SessionPeerConfig(observe_others=True, observe_me=False))]
    )
    assert set_values(await c(session).get_peer_configuration("alice")) == {}
    assert set_values(await c(session).get_peer_configuration("bob")) == {
        "observe_others": True,
        "observe_me": False,
    }
    await c(session).set_peer_configuration("bob", SessionPeerConfig(observe_me=True))
    assert set_values(await c(session).get_peer_configuration("bob")) == {
        "observe_others": True,
        "observe_me": True,
    }
    await c(session).add_peers([("bob", SessionPeerConfig(observe_others=False))])
    assert set_values(await c(session).get_peer_configuration("bob")) == {
        "observe_others": True,
        "observe_me": True,
    }, "a member keeps its own"
    await c.raises(NotFoundError, c(session).get_peer_configuration("nobody"))
    await c.raises(
        NotFoundError,
        c(session).set_peer_configuration("nobody", SessionPeerConfig(observe_me=True)),
    )


@scenario
async def a_session_has_a_limit_of_observers(c: Caller) -> None:
    honcho = c.honcho()
    watching = SessionPeerConfig(observe_others=True)
    session = await c(honcho).session(
        "talk", peers=[(f"watcher{number}", watching) for number in range(10)]
    )
    error = await c.raises(BadRequestError, c(session).add_peers([("one-more", watching)]))
    assert "10" in error.message
    assert len(await c(session).peers()) == 10, "nobody is added by a request that is refused"
    await c(session).add_peers("just-listening")
    assert len(await c(session).peers()) == 11


@scenario
async def metadata_has_limits(c: Caller) -> None:
    honcho = c.honcho()
    full = {f"key{number}": number for number in range(100)}
    await c(honcho).set_metadata(full)
    assert await c(c.honcho(honcho.workspace_id)).get_metadata() == full
    await c.raises(UnprocessableEntityError, c(honcho).set_metadata(full | {"one": "more"}))
    deepest: dict[str, Any] = {"1": {"2": {"3": {"4": {}}}}}
    await c(honcho).peer("alice", metadata=deepest)
    await c.raises(UnprocessableEntityError, c(honcho).peer("alice", metadata={"0": deepest}))
    assert await c(await c(honcho).peer("alice")).get_metadata() == deepest
