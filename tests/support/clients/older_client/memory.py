"""The main job with the older client: what was said is found, learnt, recalled and answered
from."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from honcho.api_types import SessionPeerConfig  # type: ignore[import-not-found]  # installed in the client's own environment only
from honcho.http.exceptions import NotFoundError, UnprocessableEntityError  # type: ignore[import-not-found]

from support.clients.published_client.harness import Caller, contents, ids, scenario
from support.clients.recall_options import narrow_everywhere

TORTOISE = "I adopted a tortoise named Balthazar last spring."
WORK = "I work as a nurse at the hospital in Bergen."
SISTER = "My sister Clara teaches physics in Lyon."


async def conversation(c: Caller) -> tuple[Any, Any, Any, Any, list[Any]]:
    honcho = c.honcho()
    alice, bob = await c(honcho).peer("alice"), await c(honcho).peer("bob")
    session = await c(honcho).session("talk")
    await c(session).add_peers([alice, bob])
    messages = await c.talk(
        session, (alice, f"Hi there! {TORTOISE}"), (bob, SISTER), (alice, f"Thanks. {WORK}")
    )
    return honcho, alice, bob, session, messages


@scenario
async def a_conversation_is_remembered_within_two_seconds(c: Caller) -> None:
    honcho, alice, bob, session, stored = await conversation(c)
    began = time.monotonic()
    while (await c(alice.conclusions).list()).total + (await c(bob.conclusions).list()).total < 3:
        assert time.monotonic() - began < 2.0, "not derived in time"
        await asyncio.sleep(0.02)
    c.notes["derived_after_seconds"] = round(time.monotonic() - began, 3)
    mine = await c.every(await c(alice.conclusions).list(reverse=True, size=1))
    assert contents(mine) == [TORTOISE, WORK]
    assert {(x.observer_id, x.observed_id, x.session_id) for x in mine} == {
        ("alice", "alice", "talk")
    }
    status = await c.settled(honcho)
    assert status.completed_work_units == status.total_work_units == 3
    assert (await c(session).queue_status(sender=bob)).total_work_units == 1

    assert ids(await c(honcho).search("Balthazar tortoise", limit=1)) == [stored[0].id]
    assert ids(await c(session).search("who teaches physics", limit=1)) == [stored[1].id]
    assert {m.peer_id for m in await c(alice).search("physics tortoise nurse")} == {"alice"}
    assert (
        await c(honcho).search("tortoise", filters={"peer_id": "bob", "session_id": "other"}) == []
    )

    representation = await c(alice).representation()
    assert [
        line.split("] ", 1)[1] for line in representation.splitlines() if line.startswith("[")
    ] == [TORTOISE, WORK]
    assert (
        await c(session).representation("alice")
        == await c(alice.conclusions).representation()
        == representation
    )
    of_peer = await c(alice).context()
    assert (of_peer.peer_id, of_peer.target_id, of_peer.representation) == (
        "alice",
        "alice",
        representation,
    )
    context = await c(session).context(peer_target="alice", search_query="tortoise")
    assert ids(context.messages) == ids(stored)
    assert TORTOISE in context.peer_representation
    assert [part["role"] for part in context.to_openai(assistant="bob")][-3:] == [
        "user",
        "assistant",
        "user",
    ]
    assert ids(
        (await c(session).context(tokens=stored[2].token_count, summary=False)).messages
    ) == [stored[2].id]
    summaries = await c(session).summaries()
    assert (summaries.id, summaries.short_summary, summaries.long_summary) == ("talk", None, None)


@scenario
async def conclusions_are_made_found_and_deleted(c: Caller) -> None:
    honcho = c.honcho()
    alice, bob = await c(honcho).peer("alice"), await c(honcho).peer("bob")
    await c(honcho).session("talk")
    tx = alice.conclusions_of(bob)
    texts = ["Bob plays the cello.", "Bob is allergic to peanuts.", "Bob lives near the harbour."]
    conclusions = await c(tx).create([{"content": text, "session_id": "talk"} for text in texts])
    assert contents(conclusions) == texts
    assert contents(await c.every(await c(tx).list(size=2))) == texts[::-1], "newest first"
    assert contents(await c.every(await c(tx).list(size=2, reverse=True))) == texts
    assert (await c(tx).list(session="talk")).total == 3
    assert contents(await c(tx).query("allergic to peanuts", top_k=1)) == [texts[1]]
    assert texts[1] in await c(tx).representation()
    await c(tx).delete(conclusions[1].id)
    assert contents(await c.every(await c(tx).list(reverse=True))) == [texts[0], texts[2]]
    await c.raises(NotFoundError, c(tx).delete(conclusions[1].id))
    await c.raises(UnprocessableEntityError, c(tx).create([{"content": ""}]))
    await c(honcho).schedule_dream(alice, observed=bob)
    await c.settled(honcho)
    assert contents(await c.every(await c(tx).list(reverse=True))) == [texts[0], texts[2]]


@scenario
async def questions_are_answered(c: Caller) -> None:
    honcho, alice, bob, session, _ = await conversation(c)
    await c.settled(honcho)
    question = "What is the name of the tortoise?"
    whole = await c(alice).chat(question)
    assert "Balthazar" in whole
    assert "Clara" in await c(bob).chat(
        "Who teaches physics in Lyon?", session=session, reasoning_level="high"
    )
    stream = await c(alice).chat_stream(question)
    pieces = [piece async for piece in stream] if hasattr(stream, "__aiter__") else list(stream)
    assert "".join(pieces).strip() == whole
    assert stream.is_complete is True
    await c.raises(NotFoundError, c(alice).chat(question, target="nobody"))
    await c.raises(NotFoundError, c(alice).chat(question, session="nowhere"))


@scenario
async def files_become_messages(c: Caller) -> None:
    honcho = c.honcho()
    session = await c(honcho).session("talk")
    (message,) = await c(session).upload_file(
        ("note.txt", f"{TORTOISE}\n".encode(), "text/plain"), "alice", metadata={"from": "phone"}
    )
    assert (message.content.strip(), message.peer_id, message.metadata) == (
        TORTOISE,
        "alice",
        {"from": "phone"},
    )
    assert ids(await c.every(await c(session).messages())) == [message.id]


@scenario
async def every_way_to_narrow_what_is_known(c: Caller) -> None:
    await narrow_everywhere(c, SessionPeerConfig(observe_others=True))
