"""The main job: what was said is found, learnt, recalled and answered from."""

from __future__ import annotations

from typing import Any

from support.clients.sdk_client.harness import Caller, scenario

TORTOISE = "I adopted a tortoise named Balthazar last spring."
WORK = "I work as a nurse at the hospital in Bergen."
SISTER = "My sister Clara teaches physics in Lyon."


async def conversation(c: Caller) -> tuple[Any, Any, Any, Any, list[Any]]:
    honcho = c.honcho()
    alice, bob = await c(honcho).peer("alice"), await c(honcho).peer("bob")
    session = await c(honcho).session("talk")
    lines = [(alice, f"Hi there! {TORTOISE}"), (bob, SISTER), (alice, f"Thanks. {WORK}")]
    stored = await c(session).add_messages([await c(peer).message(text) for peer, text in lines])
    return honcho, alice, bob, session, stored


def explicit(representation: Any) -> list[str]:
    return [item.content for item in representation.explicit]


@scenario
async def a_conversation_is_remembered(c: Caller) -> None:
    honcho, alice, bob, session, stored = await conversation(c)
    status = await c(honcho).poll_deriver_status(timeout=20)
    assert status.completed_work_units == status.total_work_units == 3
    assert (await c(honcho).get_deriver_status(sender=bob)).total_work_units == 1
    assert (await c(session).get_deriver_status(sender="alice")).total_work_units == 2
    assert (await c(session).poll_deriver_status(timeout=20)).total_work_units == 3

    assert (await c(honcho).search("Balthazar tortoise", limit=1))[0].id == stored[0].id
    assert (await c(session).search("who teaches physics", limit=1))[0].id == stored[1].id
    assert {message.peer_id for message in await c(alice).search("physics tortoise nurse")} == {
        "alice"
    }
    assert await c(honcho).search("tortoise", filters={"session_id": "other"}) == []

    assert explicit(await c(alice).working_rep()) == [TORTOISE, WORK]
    of_session = await c(session).working_rep("alice")
    assert explicit(of_session) == [TORTOISE, WORK], of_session
    assert explicit(await c(alice).working_rep(max_observations=1, include_most_derived=False)) == [
        WORK
    ]
    # With the core that it asks for, the client can read a context only of whom nothing is known.
    about_bob = await c(alice).get_context(target="bob")
    assert (
        about_bob.peer_id,
        about_bob.target_id,
        explicit(about_bob.representation),
        about_bob.peer_card,
    ) == (
        "alice",
        "bob",
        [],
        None,
    )
    context = await c(session).get_context(
        peer_target="alice", last_user_message="tortoise", tokens=5_000
    )
    assert [message.id for message in context.messages] == [message.id for message in stored]
    assert TORTOISE in str(context.peer_representation)
    assert [part["role"] for part in context.to_openai(assistant="bob")][-3:] == [
        "user",
        "assistant",
        "user",
    ]
    assert [
        message.id
        for message in (
            await c(session).get_context(tokens=stored[2].token_count, summary=False)
        ).messages
    ] == [stored[2].id]
    summaries = await c(session).get_summaries()
    assert (summaries.id, summaries.short_summary, summaries.long_summary) == ("talk", None, None)


@scenario
async def observations_are_made_found_and_deleted(c: Caller) -> None:
    honcho = c.honcho()
    alice = await c(honcho).peer("alice", metadata={"known": True})
    bob = await c(honcho).peer("bob", metadata={"known": True})
    await c(honcho).session("talk", metadata={"known": True})
    scope = await c(alice).observations_of(bob)
    texts = ["Bob plays the cello.", "Bob is allergic to peanuts.", "Bob lives near the harbour."]
    observations = await c(scope).create(
        [{"content": text, "session_id": "talk"} for text in texts]
    )
    assert [item.content for item in observations] == texts
    assert {(item.observer_id, item.observed_id, item.session_id) for item in observations} == {
        ("alice", "bob", "talk")
    }
    listed = await c(scope).list()
    assert [item.content for item in listed] == texts[::-1], "newest first"
    assert [item.content for item in await c(scope).query("allergic to peanuts", top_k=1)] == [
        texts[1]
    ]
    assert texts[1] in str(await c(scope).get_representation())
    await c(scope).delete(observations[1].id)
    assert [item.content for item in await c(scope).list()] == [texts[2], texts[0]]
    assert await c(alice.observations).list() == []
    await c.raises("NotFoundError", c(scope).delete(observations[1].id))


@scenario
async def questions_are_answered(c: Caller) -> None:
    honcho, alice, bob, session, _ = await conversation(c)
    await c(honcho).poll_deriver_status(timeout=20)
    question = "What is the name of the tortoise?"
    whole = await c(alice).chat(question)
    assert "Balthazar" in whole
    assert "Clara" in await c(bob).chat("Who teaches physics in Lyon?", session=session)
    stream = await c(alice).chat(question, stream=True)
    assert "".join(await c.every(stream)).strip() == whole
    assert stream.is_complete is True
    await c.raises("NotFoundError", c(alice).chat(question, target="nobody"))
    await c.raises("NotFoundError", c(alice).chat(question, session="nowhere"))
