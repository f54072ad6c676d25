"""Dreams: what is known is consolidated, and it stays visible from what."""

from __future__ import annotations

from honcho.http.exceptions import UnprocessableEntityError  # type: ignore[import-not-found]  # in the client's own environment only

from support.clients.published_client.harness import Caller, contents, ids, scenario

SAID = [
    "I live in Rome.",
    "I like green tea.",
    "Carol plays the violin.",
    "I really like green tea.",
    "My favourite colour is blue.",
    "I moved to Berlin.",
    "I do not like green tea.",
]
OUTDATED = ["I live in Rome.", "I like green tea."]


@scenario
async def a_dream_replaces_what_is_outdated_and_writes_the_card(c: Caller) -> None:
    honcho = c.honcho()
    alice = await c(honcho).peer("alice")
    await c(honcho).session("talk")
    conclusions = [
        (await c(alice.conclusions).create([{"content": text, "session_id": "talk"}]))[0]
        for text in SAID
    ]
    await c(alice.conclusions_of("alice")).query("green tea")
    await c(honcho).schedule_dream(alice)
    await c(honcho).schedule_dream("alice", observed=alice)
    await c.settled(honcho)
    left = await c.every(await c(alice.conclusions).list(reverse=True))
    assert contents(left) == [text for text in SAID if text not in OUTDATED]
    assert set(ids(left)) < set(ids(conclusions)), "what is kept is not written anew"
    representation = await c(alice).representation()
    for text in SAID:
        assert (f"] {text}" in representation) is (text not in OUTDATED), text
    assert "I live in Rome." not in contents(
        await c(alice.conclusions).query("Where in Rome do I live?")
    )
    assert await c(alice).get_card() == [
        "ATTRIBUTE: My favourite colour is blue.",
        "ATTRIBUTE: I moved to Berlin.",
    ]
    assert await c.every(await c(alice.conclusions).derived(left[0].id)) == [], (
        "nothing is derived without a model"
    )
    await c(honcho).schedule_dream("alice", session="talk")
    await c.settled(honcho)
    assert ids(await c.every(await c(alice.conclusions).list(reverse=True))) == ids(left), (
        "a second dream finds nothing new"
    )


@scenario
async def a_dream_of_a_scope_is_refused(c: Caller) -> None:
    honcho = c.honcho()
    await c(honcho).peer("alice")
    await c(honcho).scope("private")
    await c.raises(
        UnprocessableEntityError, c(honcho).schedule_dream("alice", observed="scope.private")
    )
