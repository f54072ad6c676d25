"""What every version of the clients can do, in its own words."""

from __future__ import annotations

import json

import honcho_core  # type: ignore[import-not-found]  # installed in the clients' own environments only

from support.clients.core_client.harness import (
    EARLY,
    FILTERS,
    NEWER,
    Caller,
    contents,
    ids,
    scenario,
)

METADATA = {"plan": "gold", "seats": 3, "tags": ["a", "b"], "deep": {"x": None}, "blåbær": "🫐"}
TORTOISE = "I adopted a tortoise named Balthazar last spring."
WORK = "I work as a nurse at the hospital in Bergen."
SISTER = "My sister Clara teaches physics in Lyon."
REASONING = "reasoning" if NEWER else "deriver"


@scenario
async def workspaces_are_described_and_listed(c: Caller) -> None:
    workspace = await c.workspaces.get_or_create(id=c.workspace, metadata=METADATA)
    assert (workspace.id, workspace.metadata, workspace.configuration) == (
        c.workspace,
        METADATA,
        {},
    )
    again = await c.workspaces.get_or_create(id=c.workspace, metadata={})
    assert again == workspace
    configuration = {REASONING: {"enabled": False}, "summary": {"messages_per_short_summary": 12}}
    changed = await c.workspaces.update(c.workspace, metadata={"a": 1}, configuration=configuration)
    assert (changed.metadata, changed.configuration) == ({"a": 1}, configuration)
    condition = {"a": 1} if EARLY else {"id": c.workspace}
    rows = await c.every(await c.workspaces.list(**{FILTERS: condition}, size=100))
    assert c.workspace in ids(rows)
    assert all((item.metadata or {}).get("a") == 1 for item in rows)
    await c.raises(honcho_core.UnprocessableEntityError, c.workspaces.get_or_create(id="two words"))


@scenario
async def peers_are_described_and_listed(c: Caller) -> None:
    names = [f"p{number}" for number in range(5)]
    for number, name in enumerate(names):
        peer = await c.peers.get_or_create(
            **c.own, id=name, metadata={"number": number}, configuration={"observe_me": number != 3}
        )
        assert (peer.id, peer.workspace_id, peer.metadata) == (
            name,
            c.workspace,
            {"number": number},
        )
    page = await c.peers.list(**c.own, size=2)
    assert (page.total, page.pages, page.page, ids(page.items)) == (5, 3, 1, names[:2])
    assert ids(await c.every(page)) == names
    condition = {"number": 3} if EARLY else {"metadata": {"number": 3}}
    (three,) = await c.every(await c.peers.list(**c.own, **{FILTERS: condition}))
    assert (three.id, three.configuration) == ("p3", {"observe_me": False})
    changed = await c.peers.update(
        "p3", **c.own, metadata={"name": "Three"}, configuration={"observe_me": True}
    )
    assert (changed.metadata, changed.configuration) == ({"name": "Three"}, {"observe_me": True})
    assert await c.peers.get_or_create(**c.own, id="p3") == changed


@scenario
async def sessions_are_described_listed_and_peopled(c: Caller) -> None:
    names = [f"s{number}" for number in range(4)]
    for name in names:
        session = await c.sessions.get_or_create(
            **c.own, id=name, metadata={"name": name}, peers={"alice": {"observe_others": True}}
        )
        assert (session.id, session.is_active, session.workspace_id) == (name, True, c.workspace)
    assert ids(await c.every(await c.sessions.list(**c.own, size=3))) == names
    condition = {"name": "s2"} if EARLY else {"metadata": {"name": "s2"}}
    assert ids(await c.every(await c.sessions.list(**c.own, **{FILTERS: condition}))) == ["s2"]
    configuration = {REASONING: {"enabled": False}}
    changed = await c.sessions.update(
        "s1", **c.own, metadata={"topic": "tea"}, configuration=configuration
    )
    assert (changed.metadata, changed.configuration) == ({"topic": "tea"}, configuration)

    assert (
        await c.sessions.peers.add("s1", **c.own, body={"bob": {"observe_me": False}, "carol": {}})
    ).id == "s1"
    assert set(ids(await c.every(await c.sessions.peers.list("s1", **c.own)))) == {
        "alice",
        "bob",
        "carol",
    }
    assert (await c.sessions.peers.remove("s1", **c.own, body=["carol"])).id == "s1"
    get_config = c.sessions.peers.any("get_config", "config")
    membership = await get_config("bob", **c.own, session_id="s1")
    assert (membership.observe_me, membership.observe_others) == (False, None)
    await c.sessions.peers.set_config(
        "bob", **c.own, session_id="s1", observe_me=True, observe_others=True
    )
    membership = await get_config("bob", **c.own, session_id="s1")
    assert (membership.observe_me, membership.observe_others) == (True, True)
    assert (await c.sessions.peers.set("s1", **c.own, body={"dave": {}, "alice": {}})).id == "s1"
    assert set(ids(await c.every(await c.sessions.peers.list("s1", **c.own)))) == {"alice", "dave"}
    assert ids(await c.every(await c.peers.sessions.list("alice", **c.own, size=3))) == names
    await c.raises(honcho_core.NotFoundError, get_config("nobody", **c.own, session_id="s1"))


@scenario
async def messages_are_stored_listed_cloned_and_deleted(c: Caller) -> None:
    messages = await c.say(
        "talk", *[(("alice", "bob")[number % 2], f"number {number}") for number in range(13)]
    )
    assert contents(await c.every(await c.sessions.messages.list("talk", **c.own, size=5))) == [
        f"number {number}" for number in range(13)
    ]
    assert (
        ids(await c.every(await c.sessions.messages.list("talk", **c.own, size=5, reverse=True)))
        == ids(messages)[::-1]
    )
    changed = await c.sessions.messages.update(
        messages[4].id, **c.own, session_id="talk", metadata={"seen": True}
    )
    assert changed.metadata == {"seen": True}
    retrieve = c.sessions.messages.any("retrieve", "get")
    assert await retrieve(messages[4].id, **c.own, session_id="talk") == changed
    condition = {"seen": True} if EARLY else {"metadata": {"seen": True}}
    assert ids(
        await c.every(await c.sessions.messages.list("talk", **c.own, **{FILTERS: condition}))
    ) == [messages[4].id]
    clone = await c.sessions.clone("talk", **c.own, message_id=messages[2].id)
    copied = await c.every(await c.sessions.messages.list(clone.id, **c.own))
    assert contents(copied) == ["number 0", "number 1", "number 2"]
    assert [item.token_count for item in copied] == [item.token_count for item in messages[:3]]
    await c.sessions.delete("talk", **c.own)
    assert ids(await c.every(await c.sessions.list(**c.own))) == [clone.id]
    await c.raises(honcho_core.NotFoundError, c.sessions.delete("talk", **c.own))
    await c.raises(honcho_core.NotFoundError, retrieve("x" * 21, **c.own, session_id=clone.id))


@scenario
async def what_was_said_is_found(c: Caller) -> None:
    messages = await c.say(
        "talk", ("alice", f"Hi there! {TORTOISE}"), ("bob", SISTER), ("alice", f"Thanks. {WORK}")
    )
    assert (await c.search(c.workspaces, "Balthazar tortoise", c.workspace))[0].id == messages[0].id
    assert (await c.search(c.sessions, "who teaches physics", "talk", **c.own))[0].id == messages[
        1
    ].id
    assert {
        item.peer_id for item in await c.search(c.peers, "physics tortoise nurse", "alice", **c.own)
    } == {"alice"}
    assert await c.search(c.workspaces, "tortoise", f"{c.workspace}-none") == []


@scenario
async def what_was_said_is_known(c: Caller) -> None:
    messages = await c.say(
        "talk", ("alice", f"Hi there! {TORTOISE}"), ("bob", SISTER), ("alice", f"Thanks. {WORK}")
    )
    represent = c.peers.any("working_representation", "representation")
    answer = ""
    for _ in range(200):
        representation = await represent("alice", **c.own, session_id="talk")
        answer = json.dumps(
            representation
            if isinstance(representation, dict)
            else representation.model_dump(mode="json")
        )
        if TORTOISE in answer and WORK in answer:
            break
    assert TORTOISE in answer
    assert WORK in answer
    assert SISTER not in answer
    context = await c.sessions.any("get_context", "context")(
        "talk", **c.own, summary=True, tokens=10_000
    )
    assert (context.id, ids(context.messages)) == ("talk", ids(messages))
    assert not context.summary
    last = await c.sessions.any("get_context", "context")(
        "talk", **c.own, summary=False, tokens=messages[2].token_count
    )
    assert ids(last.messages) == [messages[2].id]


@scenario
async def questions_are_answered(c: Caller) -> None:
    await c.say("talk", ("alice", TORTOISE), ("bob", SISTER))
    question = (
        {"queries": ["What is the name", "of the tortoise?"]}
        if EARLY
        else {"query": "What is the name of the tortoise?"}
    )
    assert "Balthazar" in (await c.peers.chat("alice", **c.own, **question)).content
    assert (
        "Balthazar"
        in (
            await c.peers.chat("alice", **c.own, **question, session_id="talk", stream=False)
        ).content
    )
    kind, text = await c.peers.streamed("chat", "alice", **c.own, **question, stream=True)
    if EARLY:
        assert kind.startswith("text/plain")
        assert "Balthazar" in text
    else:
        assert kind.startswith("text/event-stream")
        *pieces, last = [
            json.loads(part.removeprefix("data: ")) for part in text.strip().split("\n\n")
        ]
        assert "Balthazar" in "".join(piece["delta"]["content"] for piece in pieces)
        assert last == {"delta": {"content": None}, "done": True}
    await c.raises(honcho_core.NotFoundError, c.peers.chat("nobody", **c.own, **question))
    await c.raises(
        honcho_core.NotFoundError, c.peers.chat("alice", **c.own, **question, target="nobody")
    )
