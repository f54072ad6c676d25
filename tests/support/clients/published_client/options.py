"""Options that the other scenarios do not give: pages of every list, filters of every search, every
option of every question."""

from __future__ import annotations

from typing import Any

from honcho.api_types import SessionPeerConfig  # type: ignore[import-not-found]  # installed in the client's own environment only

from support.clients.list_options import second_pages
from support.clients.published_client.chat import FORM, TORTOISE, Finding, drained
from support.clients.published_client.harness import Caller, contents, ids, scenario

TEACHER = "I teach chemistry at the school by the river."
QUESTION = "What is the name of the tortoise?"
LEVELS = ("minimal", "low", "medium", "high", "max")


@scenario
async def every_list_has_pages(c: Caller) -> None:
    honcho = c.honcho()
    names = [f"n{number}" for number in range(5)]
    alice = await c(honcho).peer("n0")
    for name in names[1:]:
        await c(honcho).peer(name)
    for name in names:
        await c(honcho).scope(name)
        await c(honcho).session(name, peers=[alice], scopes=["n0"])
    everything = await c(honcho).get_scope("n0")
    conclusions = await c(alice.conclusions).create(
        [{"content": f"Fact {name}."} for name in names]
    )
    await second_pages(c(honcho).peers, names, "peers")
    await second_pages(c(honcho).sessions, names, "sessions")
    await second_pages(c(honcho).scopes, names, "scopes")
    await second_pages(c(alice).sessions, names, "a peer's sessions")
    await second_pages(c(everything).sessions, names, "a scope's sessions")
    await second_pages(c(alice.conclusions).list, ids(conclusions)[::-1], "a pair's conclusions")
    await second_pages(
        c(honcho.conclusions).list, ids(conclusions)[::-1], "a workspace's conclusions"
    )


@scenario
async def a_search_of_a_peer_and_of_a_session_is_filtered(c: Caller) -> None:
    honcho = c.honcho()
    alice, bob = await c(honcho).peer("alice"), await c(honcho).peer("bob")
    home, travel = await c(honcho).session("home"), await c(honcho).session("travel")
    await c(home).add_messages(
        [
            alice.message("A tortoise at home.", metadata={"n": 1}),
            bob.message("A tortoise of mine."),
        ]
    )
    await c(travel).add_messages(alice.message("A tortoise on the road.", metadata={"n": 2}))
    assert contents(await c(alice).search("tortoise", filters={"session_id": "travel"})) == [
        "A tortoise on the road."
    ]
    assert contents(await c(alice).search("tortoise", filters={"metadata": {"n": {"lt": 2}}})) == [
        "A tortoise at home."
    ]
    assert len(await c(alice).search("tortoise", limit=1)) == 1
    assert contents(await c(home).search("tortoise", filters={"peer_id": "bob"})) == [
        "A tortoise of mine."
    ]
    assert contents(await c(home).search("tortoise", filters={"metadata": {"n": 1}}, limit=5)) == [
        "A tortoise at home."
    ]
    assert await c(home).search("tortoise", filters={"peer_id": "nobody"}) == []


async def watched(c: Caller) -> dict[str, Any]:
    """Bob heard alice at home, not at work. Work is in a scope."""
    honcho = c.honcho()
    alice, bob = await c(honcho).peer("alice"), await c(honcho).peer("bob")
    home = await c(honcho).session(
        "home", peers=[alice, (bob, SessionPeerConfig(observe_others=True))]
    )
    work = await c(honcho).session("work", peers=[alice], scopes=["office"])
    await c.talk(home, (alice, TORTOISE))
    await c.talk(work, (alice, TEACHER))
    await c.settled(honcho)
    return {"honcho": honcho, "alice": alice, "bob": bob, "home": home, "work": work}


@scenario
async def a_peer_answers_from_what_it_knows_of_another(c: Caller) -> None:
    at = await watched(c)
    alice, bob = at["alice"], at["bob"]
    answer = await c(bob).chat(QUESTION, target=alice, include_evidence=True)
    assert "Balthazar" in answer.content
    assert {(x.observer_id, x.observed_id) for x in answer.evidence.conclusions} == {
        ("bob", "alice")
    }
    assert "chemistry" not in (
        await c(bob).chat("What do I teach at the school?", target="alice") or ""
    )
    assert "chemistry" in await c(alice).chat("What do I teach at the school?", target="alice")
    own = await c(bob).chat(QUESTION, include_evidence=True)
    assert own.evidence.conclusions == [], "of himself he knows nothing"
    stream = await c(bob).chat_stream(QUESTION, target=alice, include_evidence=True)
    assert "Balthazar" in await drained(c, stream)
    assert {(x.observer_id, x.observed_id) for x in stream.evidence.conclusions} == {
        ("bob", "alice")
    }
    assert await c(bob).card(target=alice) is None
    await c(bob).set_card(["Has a tortoise"], target="alice")
    assert await c(bob).card(target="alice") == ["Has a tortoise"]
    assert await c(bob).card() is None


@scenario
async def a_stream_takes_what_a_whole_answer_takes(c: Caller) -> None:
    at = await watched(c)
    honcho, alice = at["honcho"], at["alice"]
    for level in LEVELS:
        assert "Balthazar" in await drained(
            c, await c(alice).chat_stream(QUESTION, reasoning_level=level, session=at["home"])
        )
        assert "Balthazar" in await drained(
            c, await c(honcho).chat_stream(QUESTION, reasoning_level=level)
        )
    for who_answers in (honcho, alice):
        of_office = await c(who_answers).chat_stream(
            "What do I teach at the school?", scope="office", include_evidence=True
        )
        assert "chemistry" in await drained(c, of_office)
        assert {x.content for x in of_office.evidence.conclusions} == {TEACHER}
        outside = await c(who_answers).chat_stream(
            QUESTION, scope=["office"], include_evidence=True
        )
        assert "Balthazar" not in await drained(c, outside)
        assert TORTOISE not in contents(outside.evidence.conclusions)
        within = await c(who_answers).chat_stream(QUESTION, session="work", include_evidence=True)
        await drained(c, within)
        assert {m.session_id for m in within.evidence.messages} == {"work"}
    formed = await c(honcho).chat_stream(QUESTION, response_format=FORM)
    assert (await drained(c, formed)).startswith("{")
    finding = Finding.model_validate_json(
        await drained(
            c, await c(alice).chat_stream(QUESTION, response_format=Finding, session="home")
        )
    )
    assert "Balthazar" in finding.answer


@scenario
async def an_answer_may_be_waited_for_as_long_as_the_caller_says(c: Caller) -> None:
    at = await watched(c)
    assert "Balthazar" in await c(at["alice"]).chat(QUESTION, timeout=30.0)


@scenario
async def a_session_counts_the_work_of_an_observer(c: Caller) -> None:
    at = await watched(c)
    whole = await c(at["home"]).queue_status()
    assert whole.total_work_units == whole.completed_work_units == 1
    for status, total in (
        (await c(at["home"]).queue_status(observer="bob"), 1),
        (await c(at["home"]).queue_status(observer=at["bob"], sender="alice"), 1),
        (await c(at["home"]).queue_status(sender="bob"), 0),
        (await c(at["work"]).queue_status(observer="bob"), 0),
    ):
        assert status.total_work_units == total
