"""What the clients from 1.3 on can do, and what was called otherwise from 1.9 on."""

from __future__ import annotations

import asyncio
from typing import Any

import honcho_core  # type: ignore[import-not-found]  # installed in the clients' own environments only

from support.clients.core_client.harness import NEWER, Caller, contents, ids, scenario

CONCLUSIONS = "conclusions" if NEWER else "observations"
MOST = "max_conclusions" if NEWER else "max_observations"
FREQUENT = "include_most_frequent" if NEWER else "include_most_derived"


def text(representation: Any) -> str:
    """All that a representation says."""
    return representation if isinstance(representation, str) else representation.model_dump_json()


@scenario
async def conclusions_are_made_found_and_deleted(c: Caller) -> None:
    for name in ("alice", "bob"):
        await c.peers.get_or_create(**c.own, id=name)
    await c.sessions.get_or_create(**c.own, id="talk")
    resource = c.workspaces.any(CONCLUSIONS)
    pair = {"observer_id": "alice", "observed_id": "bob", "session_id": "talk"}
    texts = ["Bob plays the cello.", "Bob is allergic to peanuts.", "Bob lives near the harbour."]
    conclusions = await resource.create(
        c.workspace, **{CONCLUSIONS: [{"content": content, **pair} for content in texts]}
    )
    assert contents(conclusions) == texts
    assert {(item.observer_id, item.observed_id, item.session_id) for item in conclusions} == {
        ("alice", "bob", "talk")
    }
    filters = {"observer": "alice", "observed": "bob"}
    assert (
        contents(await c.every(await resource.list(c.workspace, filters=filters, size=2)))
        == texts[::-1]
    ), "newest first"
    assert contents(await c.every(await resource.list(c.workspace, reverse=True))) == texts
    assert contents(
        await resource.query(c.workspace, query="allergic to peanuts", top_k=1, filters=filters)
    ) == [texts[1]]
    await resource.delete(conclusions[1].id, **c.own)
    assert contents(await c.every(await resource.list(c.workspace, reverse=True))) == [
        texts[0],
        texts[2],
    ]
    await c.raises(honcho_core.NotFoundError, resource.delete(conclusions[1].id, **c.own))
    await c.raises(
        honcho_core.UnprocessableEntityError, resource.query(c.workspace, query="peanuts")
    )
    represent = c.peers.any("working_representation", "representation")
    representation = await represent(
        "alice",
        **c.own,
        target="bob",
        search_query="cello",
        search_top_k=1,
        **{MOST: 1, FREQUENT: False},
    )
    assert texts[0] in str(representation)
    assert texts[2] not in str(representation)
    context = await c.peers.any("get_context", "context")(
        "alice", **c.own, target="bob", **{MOST: 5}
    )
    assert (context.peer_id, context.target_id) == ("alice", "bob")
    assert all(content in text(context.representation) for content in (texts[0], texts[2]))
    about = await c.sessions.any("get_context", "context")(
        "talk", **c.own, peer_target="bob", peer_perspective="alice", last_message="cello"
    )
    assert texts[0] in text(about.peer_representation)


@scenario
async def conclusions_without_a_session_have_one_all_the_same(c: Caller) -> None:
    await c.peers.get_or_create(**c.own, id="alice")
    resource = c.workspaces.any(CONCLUSIONS)
    draft = {
        "content": "Alice sings.",
        "observer_id": "alice",
        "observed_id": "alice",
        "session_id": "__global_observations__",
    }
    (conclusion,) = await resource.create(c.workspace, **{CONCLUSIONS: [draft]})
    assert conclusion.session_id == draft["session_id"]
    assert ids(
        await c.every(
            await resource.list(c.workspace, filters={"session_id": conclusion.session_id})
        )
    ) == [conclusion.id]


@scenario
async def cards_are_kept(c: Caller) -> None:
    await c.peers.get_or_create(**c.own, id="alice")
    assert (await c.peers.card("alice", **c.own)).peer_card is None
    assert (
        await c.peers.set_card("alice", **c.own, peer_card=["Name: Alice", "name:  ALICE"])
    ).peer_card == ["Name: Alice"]
    assert (await c.peers.card("alice", **c.own)).peer_card == ["Name: Alice"]
    assert (
        await c.peers.set_card("alice", **c.own, peer_card=["Tall"], target="bob")
    ).peer_card == ["Tall"]
    assert (await c.peers.card("alice", **c.own, target="bob")).peer_card == ["Tall"]
    await c.raises(honcho_core.NotFoundError, c.peers.set_card("nobody", **c.own, peer_card=[]))


@scenario
async def dreams_run(c: Caller) -> None:
    await c.say("talk", ("alice", "I live in Ulm."), ("alice", "I live in Ulm."))
    await c.settled()
    if NEWER:
        await c.workspaces.schedule_dream(
            c.workspace, observer="alice", dream_type="omni", session_id="talk"
        )
    else:
        await c.workspaces.trigger_dream(c.workspace, observer="alice", dream_type="consolidate")
    status = await c.settled()
    assert status.completed_work_units == 3
    dream = c.workspaces.any("schedule_dream", "trigger_dream")
    named = {"dream_type": "omni", "session_id": "talk"} if NEWER else {"dream_type": "agent"}
    await dream(c.workspace, observer="nobody", **named)
    assert (await c.settled()).completed_work_units == 3, (
        "of whom nobody knows there is nothing to dream"
    )


@scenario
async def summaries_are_there_or_not(c: Caller) -> None:
    await c.sessions.get_or_create(
        **c.own, id="talk", configuration={"summary": {"messages_per_short_summary": 10}}
    )
    empty = await c.sessions.summaries("talk", **c.own)
    assert (empty.id, empty.short_summary, empty.long_summary) == ("talk", None, None)
    messages = await c.say(
        "talk",
        *[
            ("alice", f"On day {number} I walked {number} miles along the river.")
            for number in range(1, 11)
        ],
    )
    await c.settled()
    for _ in range(100):
        summary = (await c.sessions.summaries("talk", **c.own)).short_summary
        if summary is not None:
            break
        await asyncio.sleep(0.05)
    assert summary is not None
    assert summary.message_id == messages[-1].id
    assert summary.content
    assert (await c.sessions.any("get_context", "context")("talk", **c.own)).summary == summary


@scenario
async def files_become_messages(c: Caller) -> None:
    file = ("note.txt", b"I adopted a tortoise.\n", "text/plain")
    (message,) = await c.sessions.messages.upload(
        "talk", **c.own, file=file, peer_id="alice", metadata='{"from": "phone"}'
    )
    assert (message.content.strip(), message.peer_id, message.metadata) == (
        "I adopted a tortoise.",
        "alice",
        {"from": "phone"},
    )
    assert ids(await c.every(await c.sessions.messages.list("talk", **c.own))) == [message.id]
    picture = ("p.png", b"\x89PNG", "image/png")
    error = await c.raises(
        honcho_core.APIStatusError,
        c.sessions.messages.upload("talk", **c.own, file=picture, peer_id="alice"),
    )
    assert error.status_code == 415


@scenario
async def webhooks_are_kept(c: Caller) -> None:
    await c.workspaces.get_or_create(id=c.workspace)
    webhooks = c.workspaces.webhooks
    endpoint = await webhooks.get_or_create(c.workspace, url="https://93.184.215.14/hook")
    assert (endpoint.workspace_id, endpoint.url) == (c.workspace, "https://93.184.215.14/hook")
    assert (await webhooks.get_or_create(c.workspace, url=endpoint.url)).id == endpoint.id
    assert ids(await c.every(await webhooks.list(c.workspace))) == [endpoint.id]
    await webhooks.delete(endpoint.id, **c.own)
    assert await c.every(await webhooks.list(c.workspace)) == []
    assert await webhooks.test_emit(c.workspace) is None
    await c.raises(honcho_core.NotFoundError, webhooks.delete(endpoint.id, **c.own))
    await c.raises(
        honcho_core.UnprocessableEntityError,
        webhooks.get_or_create(c.workspace, url="http://127.0.0.1/"),
    )


@scenario
async def workspaces_are_deleted_with_what_is_in_them(c: Caller) -> None:
    await c.workspaces.get_or_create(id=c.workspace, metadata={"a": 1})
    await c.say("talk", ("alice", "Hello."))
    deleted_workspace = await c.workspaces.delete(c.workspace)
    assert NEWER or (deleted_workspace.id, deleted_workspace.metadata) == (c.workspace, {"a": 1})
    assert await c.every(await c.peers.list(**c.own)) == []
    await c.raises(honcho_core.NotFoundError, c.workspaces.delete(c.workspace))
    assert (await c.workspaces.get_or_create(id=c.workspace)).metadata == {}


@scenario
async def search_takes_filters_and_a_limit(c: Caller) -> None:
    messages = await c.say(
        "talk",
        ("alice", "The tortoise sleeps."),
        ("bob", "A tortoise eats."),
        ("alice", "My tortoise swims."),
    )
    assert len(await c.workspaces.search(c.workspace, query="tortoise", limit=2)) == 2
    assert ids(
        await c.sessions.search("talk", **c.own, query="tortoise", filters={"peer_id": "bob"})
    ) == [messages[1].id]
    assert len(await c.peers.search("alice", **c.own, query="tortoise", limit=1)) == 1
