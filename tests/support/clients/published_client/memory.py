"""The main job: a conversation goes in, and what was learnt from it comes back."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from honcho.api_types import (  # type: ignore[import-not-found]  # installed in the client's own environment only
    PeerConfig,
    ReasoningConfiguration,
    SessionConfiguration,
    SessionPeerConfig,
)

from support.clients.published_client.harness import Caller, contents, ids, scenario
from support.clients.recall_options import narrow_everywhere

DERIVED_SECONDS = 2.0
"""After the write, on the default installation."""

TORTOISE = "I adopted a tortoise named Balthazar last spring."
WORK = "I work as a nurse at the hospital in Bergen."
QUESTION = "What does he eat?"
SISTER = "My sister Clara teaches physics in Lyon."


@scenario
async def a_conversation_is_remembered_within_two_seconds(c: Caller) -> None:
    honcho = c.honcho()
    alice, bob = await c(honcho).peer("alice"), await c(honcho).peer("bob")
    session = await c(honcho).session("talk", peers=[alice, bob])
    messages = await c.talk(
        session,
        (alice, f"Hi there! {TORTOISE}"),
        (bob, QUESTION),
        (alice, f"Thanks. {WORK}"),
        (bob, SISTER),
    )
    began = time.monotonic()
    while len(await c.every(await c(honcho.conclusions).list())) < 3:
        assert time.monotonic() - began < DERIVED_SECONDS, "not derived in time"
        await asyncio.sleep(0.02)
    c.notes["derived_after_seconds"] = round(time.monotonic() - began, 3)

    mine = await c.every(await c(alice.conclusions).list(reverse=True))
    assert contents(mine) == [TORTOISE, WORK], (
        "statements only: no greetings, no questions, nobody else's"
    )
    assert {
        (x.observer_id, x.observed_id, x.session_id, x.level, x.times_derived) for x in mine
    } == {("alice", "alice", "talk", "explicit", 1)}
    assert contents(await c.every(await c(bob.conclusions).list())) == [SISTER]
    assert contents(await c(alice.conclusions).query("tortoise Balthazar", top_k=1)) == [TORTOISE]
    assert contents(await c(alice.conclusions).query("nurse at a hospital", top_k=1)) == [WORK]
    assert SISTER not in contents(await c(alice.conclusions).query("Clara teaches physics"))

    assert contents(await c(honcho).search("Balthazar the tortoise", limit=1)) == [
        f"Hi there! {TORTOISE}"
    ]
    representation = await c(alice).representation()
    assert representation.startswith("## Explicit Observations\n\n[")
    assert [
        line.split("] ", 1)[1] for line in representation.splitlines() if line.startswith("[")
    ] == [TORTOISE, WORK]
    context = await c(session).context(peer_target="alice")
    assert ids(context.messages) == ids(messages)
    assert TORTOISE in context.peer_representation
    assert SISTER not in context.peer_representation

    status = await c.settled(honcho)
    assert status.completed_work_units == status.total_work_units > 0


@scenario
async def what_is_said_again_is_counted_not_repeated(c: Caller) -> None:
    honcho = c.honcho()
    alice = await c(honcho).peer("alice")
    session, other = await c(honcho).session("talk"), await c(honcho).session("other")
    await c.talk(session, (alice, TORTOISE))
    await c.settled(honcho)
    await c.talk(session, (alice, TORTOISE), (alice, WORK))
    await c.settled(honcho)
    counts = {x.content: x.times_derived for x in await c.every(await c(alice.conclusions).list())}
    assert counts == {TORTOISE: 2, WORK: 1}
    await c.talk(other, (alice, TORTOISE))
    await c.settled(honcho)
    everywhere = await c.every(await c(alice.conclusions).list(filters={"content": TORTOISE}))
    assert sorted((x.session_id, x.times_derived) for x in everywhere) == [
        ("other", 1),
        ("talk", 2),
    ], "each session keeps what it taught"
    assert (await c(alice).representation()).count(TORTOISE) == 1


@scenario
async def observers_learn_what_they_heard(c: Caller) -> None:
    honcho = c.honcho()
    alice, bob, carol = [await c(honcho).peer(name) for name in ("alice", "bob", "carol")]
    watching = SessionPeerConfig(observe_others=True)
    shared = await c(honcho).session("shared", peers=[alice, (bob, watching), carol])
    private = await c(honcho).session("private", peers=[alice])
    await c.talk(shared, (alice, TORTOISE), (carol, SISTER))
    await c.talk(private, (alice, WORK))
    await c.settled(honcho)

    def all_of(tx: Any) -> Any:
        return c(tx).list(reverse=True)

    assert contents(await c.every(await all_of(alice.conclusions))) == [TORTOISE, WORK]
    assert contents(await c.every(await all_of(bob.conclusions_of(alice)))) == [TORTOISE], (
        "bob was not in the private session"
    )
    assert contents(await c.every(await all_of(bob.conclusions_of("carol")))) == [SISTER]
    assert contents(await c.every(await all_of(carol.conclusions_of("alice")))) == [], (
        "carol does not observe"
    )
    assert contents(await c.every(await all_of(bob.conclusions))) == []

    theirs = await c(bob).representation(target=alice)
    assert TORTOISE in theirs
    assert WORK not in theirs
    assert await c(bob.conclusions_of(alice)).representation() == theirs
    assert await c(carol).representation(target=alice) == ""
    assert WORK in await c(alice).representation()
    context = await c(shared).context(peer_target="alice", peer_perspective="bob")
    assert TORTOISE in context.peer_representation
    assert WORK not in context.peer_representation
    whole = await c(shared).context(peer_target="alice")
    assert WORK in whole.peer_representation


@scenario
async def representation_is_narrowed(c: Caller) -> None:
    honcho = c.honcho()
    alice = await c(honcho).peer("alice")
    home, travel = await c(honcho).session("home"), await c(honcho).session("travel")
    facts = [
        f"I own {number} books about {topic}."
        for number, topic in enumerate(["ships", "bees", "clouds", "salt", "maps", "owls"], 2)
    ]
    await c.talk(home, *[(alice, fact) for fact in facts])
    await c.talk(travel, (alice, "I visited Lisbon in October."))
    await c.settled(honcho)

    def lines(text: str) -> list[str]:
        return [line.split("] ", 1)[1] for line in text.splitlines() if line.startswith("[")]

    assert lines(await c(alice).representation()) == [*facts, "I visited Lisbon in October."]
    assert lines(await c(travel).representation("alice")) == ["I visited Lisbon in October."]
    assert lines(await c(home).representation(alice)) == facts
    assert lines(await c(alice).representation(session=home)) == facts
    assert lines(await c(alice).representation(sessions=[travel])) == [
        "I visited Lisbon in October."
    ]
    assert lines(await c(alice).representation(max_conclusions=2)) == [
        facts[-1],
        "I visited Lisbon in October.",
    ], "the latest"
    shown = lines(
        await c(alice).representation(
            search_query="books about bees", search_top_k=1, max_conclusions=1
        )
    )
    assert shown == [facts[1]]
    assert await c(await c(honcho).peer("stranger")).representation() == ""

    context = await c(alice).context()
    assert (context.peer_id, context.target_id, context.peer_card) == ("alice", "alice", None)
    assert lines(context.representation) == [*facts, "I visited Lisbon in October."]
    assert (
        facts[2]
        in (
            await c(alice).context(search_query="clouds", search_top_k=1, max_conclusions=3)
        ).representation
    )


@scenario
async def nothing_is_derived_where_it_is_switched_off(c: Caller) -> None:
    honcho = c.honcho()
    off = SessionConfiguration(reasoning=ReasoningConfiguration(enabled=False))
    alice = await c(honcho).peer("alice")
    shy = await c(honcho).peer("shy", configuration=PeerConfig(observe_me=False))
    silent, usual = (
        await c(honcho).session("silent", configuration=off),
        await c(honcho).session("usual"),
    )
    await c.talk(silent, (alice, TORTOISE))
    await c.talk(usual, (shy, SISTER), (alice, WORK))
    await c(usual).add_messages(
        alice.message(TORTOISE, configuration={"reasoning": {"enabled": False}})
    )
    await c.settled(honcho)
    assert contents(await c.every(await c(honcho.conclusions).list())) == [WORK]
    assert len(await c(honcho).search("tortoise Balthazar")) >= 2, (
        "it is stored and found all the same"
    )


@scenario
async def queue_status_counts_the_work(c: Caller) -> None:
    honcho = c.honcho()
    empty = await c(honcho).queue_status()
    assert (empty.total_work_units, empty.pending_work_units, empty.sessions) == (0, 0, None)
    alice, bob = await c(honcho).peer("alice"), await c(honcho).peer("bob")
    one, two = await c(honcho).session("one"), await c(honcho).session("two")
    await c.talk(one, (alice, TORTOISE), (bob, SISTER))
    await c.talk(two, (alice, WORK))
    status = await c.settled(honcho)
    assert status.total_work_units == status.completed_work_units == 3
    assert sorted(entry.total_work_units for entry in status.sessions.values()) == [1, 2]
    assert (
        set(status.sessions)
        == {entry.session_id for entry in status.sessions.values()}
        == {one.uid, two.uid}
    )
    of_one = await c(one).queue_status()
    assert (of_one.total_work_units, of_one.sessions) == (2, None)
    assert (await c(honcho).queue_status(sender="bob")).total_work_units == 1
    assert (await c(honcho).queue_status(observer="alice", sender="bob")).total_work_units == 3
    assert (await c(honcho).queue_status(session="nowhere")).total_work_units == 0
    assert (await c(two).queue_status(sender="bob")).total_work_units == 0


@scenario
async def every_way_to_narrow_what_is_known(c: Caller) -> None:
    await narrow_everywhere(c, SessionPeerConfig(observe_others=True))
