"""Options that the other scenarios of the older client do not give."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from honcho.api_types import SessionConfiguration, SessionPeerConfig, SummaryConfiguration  # type: ignore[import-not-found]  # installed in the client's own environment only

from support.clients.list_options import second_pages
from support.clients.published_client.harness import Caller, contents, ids, scenario
from support.clients.recall_options import lines

TORTOISE = "I adopted a tortoise named Balthazar last spring."
TEACHER = "I teach chemistry at the school by the river."
QUESTION = "What is the name of the tortoise?"


async def watched(c: Caller) -> dict[str, Any]:
    """Bob heard alice at home, not at work."""
    honcho = c.honcho()
    alice, bob = await c(honcho).peer("alice"), await c(honcho).peer("bob")
    home, work = await c(honcho).session("home"), await c(honcho).session("work")
    await c(home).add_peers([alice, (bob, SessionPeerConfig(observe_others=True))])
    await c.talk(home, (alice, TORTOISE))
    await c.talk(work, (alice, TEACHER))
    await c.settled(honcho)
    return {"honcho": honcho, "alice": alice, "bob": bob, "home": home, "work": work}


@scenario
async def every_list_has_pages(c: Caller) -> None:
    honcho = c.honcho()
    names = [f"n{number}" for number in range(5)]
    alice = await c(honcho).peer("n0")
    for name in names[1:]:
        await c(honcho).peer(name)
    for name in names:
        await c(await c(honcho).session(name, metadata={"name": name})).add_peers(alice)
    conclusions = await c(alice.conclusions).create(
        [{"content": f"Fact {name}."} for name in names]
    )
    await second_pages(c(honcho).peers, names, "peers")
    await second_pages(c(honcho).sessions, names, "sessions")
    await second_pages(c(alice).sessions, names, "a peer's sessions")
    await second_pages(c(alice.conclusions).list, ids(conclusions)[::-1], "a pair's conclusions")
    assert ids(await c.every(await c(alice).sessions({"metadata": {"name": "n3"}}))) == ["n3"]


@scenario
async def one_peer_knows_another(c: Caller) -> None:
    at = await watched(c)
    alice, bob, home, work = at["alice"], at["bob"], at["home"], at["work"]
    assert lines(await c(bob).representation(target=alice)) == [TORTOISE]
    assert lines(await c(alice).representation(session=work)) == [TEACHER]
    context = await c(bob).context(target=alice)
    assert (context.peer_id, context.target_id, lines(context.representation)) == (
        "bob",
        "alice",
        [TORTOISE],
    )
    everywhere = await c(work).context(peer_target="alice")
    assert lines(everywhere.peer_representation) == [TORTOISE, TEACHER]
    assert lines(
        (await c(work).context(peer_target="alice", limit_to_session=True)).peer_representation
    ) == [TEACHER]
    assert lines(
        (await c(work).context(peer_target="alice", peer_perspective="bob")).peer_representation
    ) == [TORTOISE]
    assert await c(bob).set_card(["Has a tortoise"], target=alice) == ["Has a tortoise"]
    assert await c(bob).card(target="alice") == ["Has a tortoise"]
    assert await c(bob).card() is None
    assert "Balthazar" in await c(bob).chat(QUESTION, target=alice)
    assert "chemistry" not in (
        await c(bob).chat("What do I teach at the school?", target="alice") or ""
    )
    for options in (
        {"target": alice},
        {"target": "alice", "session": home, "reasoning_level": "minimal"},
    ):
        stream = await c(bob).chat_stream(QUESTION, **options)
        pieces = [piece async for piece in stream] if hasattr(stream, "__aiter__") else list(stream)
        assert "Balthazar" in "".join(pieces)
        assert stream.get_final_response() == {"content": "".join(pieces)}


@scenario
async def work_is_counted_by_who_and_where(c: Caller) -> None:
    at = await watched(c)
    honcho, home, work = at["honcho"], at["home"], at["work"]
    assert (await c(honcho).queue_status()).total_work_units == 2
    assert (await c(honcho).queue_status(observer="bob")).total_work_units == 1
    assert (await c(honcho).queue_status(sender=at["alice"])).total_work_units == 2
    assert (await c(honcho).queue_status(session=work)).total_work_units == 1
    assert (await c(home).queue_status(observer=at["bob"])).total_work_units == 1
    assert (await c(work).queue_status(observer="bob")).total_work_units == 0


@scenario
async def searches_and_queries_are_narrowed(c: Caller) -> None:
    at = await watched(c)
    alice, home, work = at["alice"], at["home"], at["work"]
    await c(home).add_messages(
        [
            at["bob"].message("A tortoise of mine."),
            alice.message("A tortoise again.", metadata={"n": 1}),
        ]
    )
    assert contents(await c(alice).search("tortoise", filters={"metadata": {"n": 1}})) == [
        "A tortoise again."
    ]
    assert len(await c(alice).search("tortoise", limit=1)) == 1
    assert await c(alice).search("tortoise", filters={"session_id": "work"}) == []
    assert contents(await c(home).search("tortoise", filters={"peer_id": "bob"})) == [
        "A tortoise of mine."
    ]
    assert contents(
        await c(work).search("chemistry school", filters={"peer_id": "alice"}, limit=3)
    ) == [TEACHER]
    await c.settled(at["honcho"])
    assert contents(await c(alice.conclusions).query("beekeeping", distance=0.0)) == []
    assert contents(await c(alice.conclusions).query("chemistry", distance=0.0, top_k=5)) == [
        TEACHER
    ]


@scenario
async def what_is_stored_carries_its_options(c: Caller) -> None:
    honcho = c.honcho()
    alice = await c(honcho).peer("alice")
    session = await c(honcho).session("talk")
    day, off = datetime(2023, 7, 4, 12, 0, 0, 5, tzinfo=UTC), {"reasoning": {"enabled": False}}
    (message,) = await c(session).add_messages(
        alice.message(TORTOISE, metadata={"n": 1}, created_at=day, configuration=off)
    )
    (read,) = await c(session).upload_file(
        ("note.txt", TEACHER.encode(), "text/plain"), alice, created_at=day, configuration=off
    )
    assert (message.metadata, message.created_at, read.created_at) == ({"n": 1}, day, day)
    assert contents(await c.every(await c(session).messages())) == [TORTOISE, TEACHER]
    await c.settled(honcho)
    assert (await c(alice.conclusions).list()).total == 0, (
        "nothing is derived where it is switched off"
    )


@scenario
async def a_dream_is_of_a_session_s_pair(c: Caller) -> None:
    honcho = c.honcho()
    alice = await c(honcho).peer("alice")
    await c(honcho).session("talk")
    for text in ("I live in Rome.", "My favourite colour is blue.", "I moved to Berlin."):
        await c(alice.conclusions).create([{"content": text, "session_id": "talk"}])
    await c(honcho).schedule_dream("alice", session="talk")
    await c.settled(honcho)
    left = contents(await c.every(await c(alice.conclusions).list(reverse=True)))
    assert left == ["My favourite colour is blue.", "I moved to Berlin."]


@scenario
async def summaries_are_written_and_left_out_as_asked(c: Caller) -> None:
    honcho = c.honcho()
    alice = await c(honcho).peer("alice")
    often = SessionConfiguration(
        summary=SummaryConfiguration(messages_per_short_summary=10, messages_per_long_summary=20)
    )
    session = await c(honcho).session("talk", configuration=often)
    messages = await c.talk(
        session,
        *[(alice, f"On day {day} I counted {day * 7} birds at the harbour.") for day in range(11)],
    )
    await c.settled(honcho)
    summaries = await c(session).summaries()
    assert (summaries.short_summary.message_id, summaries.long_summary) == (messages[9].id, None)
    whole, without = await c(session).context(), await c(session).context(summary=False)
    assert (whole.summary.content, ids(whole.messages)) == (
        summaries.short_summary.content,
        ids(messages[9:]),
    )
    assert (without.summary, ids(without.messages)) == (None, ids(messages))
