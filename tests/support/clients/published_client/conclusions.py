"""Conclusions as callers make, list, query and delete them; and peer cards."""

from __future__ import annotations

from typing import Any

from honcho.conclusions import ConclusionCreateParams  # type: ignore[import-not-found]  # installed in the client's own environment only
from honcho.http.exceptions import NotFoundError, UnprocessableEntityError  # type: ignore[import-not-found]

from support.clients.published_client.harness import Caller, contents, ids, scenario


@scenario
async def conclusions_are_created_and_listed(c: Caller) -> None:
    honcho = c.honcho()
    alice, bob = await c(honcho).peer("alice"), await c(honcho).peer("bob")
    await c(honcho).session("talk")
    tx = alice.conclusions_of(bob)
    conclusions = await c(tx).create(
        [
            {"content": "Bob likes tea.", "session_id": "talk"},
            ConclusionCreateParams(content="Bob plays chess."),
            {"content": "Bob is 40."},
        ]
    )
    assert contents(conclusions) == ["Bob likes tea.", "Bob plays chess.", "Bob is 40."]
    assert [x.session_id for x in conclusions] == ["talk", None, None]
    assert {
        (x.observer_id, x.observed_id, x.level, x.source_ids, x.times_derived) for x in conclusions
    } == {("alice", "bob", "explicit", None, 1)}
    assert {len(x.id) for x in conclusions} == {21}
    page = await c(tx).list(size=2)
    assert (page.total, page.pages) == (3, 2)
    assert contents(await c.every(page)) == contents(conclusions)[::-1], "newest first"
    assert contents(await c.every(await c(tx).list(size=2, reverse=True))) == contents(conclusions)
    assert contents(await c.every(await c(tx).list(session="talk"))) == ["Bob likes tea."]
    chess = {"level": "explicit", "content": {"contains": "chess"}}
    assert contents(await c.every(await c(tx).list(filters=chess))) == ["Bob plays chess."]
    assert (await c(tx).list(filters={"level": "deductive"})).total == 0
    assert (await c(alice.conclusions).list()).total == 0
    assert (await c(bob.conclusions_of("alice")).list()).total == 0
    assert (await c(honcho.conclusions).list()).total == 3
    of_talk = {"observed_id": "bob", "session_id": "talk"}
    assert contents(await c.every(await c(honcho.conclusions).list(filters=of_talk))) == [
        "Bob likes tea."
    ]


@scenario
async def conclusions_are_found_by_id(c: Caller) -> None:
    honcho = c.honcho()
    alice, bob = await c(honcho).peer("alice"), await c(honcho).peer("bob")
    first, second = await c(alice.conclusions).create([{"content": "One."}, {"content": "Two."}])
    (third,) = await c(alice.conclusions_of(bob)).create([{"content": "Three."}])
    conclusion = await c(honcho.conclusions).get(third.id)
    assert (
        conclusion.id,
        conclusion.content,
        conclusion.observer_id,
        conclusion.observed_id,
        conclusion.created_at,
    ) == (
        third.id,
        "Three.",
        "alice",
        "bob",
        third.created_at,
    )
    assert (await c(alice.conclusions).get(first.id)).content == "One."
    await c.raises(NotFoundError, c(alice.conclusions).get(third.id))
    await c.raises(NotFoundError, c(honcho.conclusions).get("x" * 21))
    assert set(ids(await c(honcho.conclusions).get_many([first.id, third.id, "x" * 21]))) == {
        first.id,
        third.id,
    }
    assert set(ids(await c(alice.conclusions).get_many([first.id, second.id, third.id]))) == {
        first.id,
        second.id,
    }
    assert await c(honcho.conclusions).get_many([]) == []
    nothing = await c(alice.conclusions).derived(first.id, page=2, size=7, reverse=True)
    assert (nothing.total, nothing.page, nothing.size, await c.every(nothing)) == (0, 2, 7, [])
    elsewhere = c.honcho()
    await c.raises(NotFoundError, c(elsewhere.conclusions).get(first.id))


@scenario
async def conclusions_are_queried(c: Caller) -> None:
    honcho = c.honcho()
    alice = await c(honcho).peer("alice")
    await c(honcho).session("talk")
    texts = [
        "Alice plays the cello in an orchestra.",
        "Alice is allergic to peanuts.",
        "Alice lives in a red house near the harbour.",
    ]
    await c(alice.conclusions).create([{"content": text} for text in texts])
    await c(alice.conclusions).create([{"content": "Alice sold her boat.", "session_id": "talk"}])
    assert contents(await c(alice.conclusions).query("allergic peanuts"))[0] == texts[1]
    assert contents(
        await c(alice.conclusions).query("where is the house at the harbour", top_k=1)
    ) == [texts[2]]
    assert contents(await c(alice.conclusions).query("cello orchestra", top_k=2))[0] == texts[0]
    assert contents(await c(alice.conclusions).query("boat", filters={"session_id": "talk"})) == [
        "Alice sold her boat."
    ]
    assert await c(alice.conclusions).query("boat", filters={"level": "deductive"}) == []
    near = contents(await c(alice.conclusions).query("allergic to peanuts", distance=0.05))
    assert near == [texts[1]], "the bound holds where no word is shared"
    assert await c(alice.conclusions_of("bob")).query("cello") == []
    await c.raises(UnprocessableEntityError, c(alice.conclusions).query("x", top_k=0))
    await c.raises(UnprocessableEntityError, c(alice.conclusions).query("x", top_k=101))
    await c.raises(UnprocessableEntityError, c(alice.conclusions).query("x", distance=1.5))


@scenario
async def a_deleted_conclusion_is_gone_everywhere(c: Caller) -> None:
    honcho = c.honcho()
    alice = await c(honcho).peer("alice")
    keep, drop = await c(alice.conclusions).create(
        [{"content": "Alice keeps bees."}, {"content": "Alice drops plates."}]
    )
    assert "Alice drops plates." in await c(alice).representation()
    await c(alice.conclusions).delete(drop.id)
    assert ids(await c.every(await c(alice.conclusions).list())) == [keep.id]
    assert ids(await c(alice.conclusions).query("drops plates")) in ([keep.id], [])
    assert "plates" not in await c(alice).representation()
    assert await c(honcho.conclusions).get_many([drop.id]) == []
    await c.raises(NotFoundError, c(honcho.conclusions).get(drop.id))
    error = await c.raises(NotFoundError, c(alice.conclusions).delete(drop.id))
    assert drop.id in error.message


@scenario
async def conclusions_need_who_and_where_they_name(c: Caller) -> None:
    honcho = c.honcho()
    alice = await c(honcho).peer("alice")
    good = {"content": "Good."}
    await c.raises(NotFoundError, c(alice.conclusions_of("nobody")).create([good]))
    await c.raises(
        NotFoundError,
        c(alice.conclusions).create([good, {"content": "Bad.", "session_id": "nowhere"}]),
    )
    bad: list[list[dict[str, Any]]] = [
        [],
        [good] * 101,
        [good, {"content": ""}],
        [{"content": "x" * 65_536}],
    ]
    for items in bad:
        await c.raises(UnprocessableEntityError, c(alice.conclusions).create(items))
    assert (await c(honcho.conclusions).list()).total == 0
    assert len(await c(alice.conclusions).create([good] * 100)) == 100, (
        "no duplicates are removed here"
    )
    assert (await c(alice.conclusions).list()).total == 100


@scenario
async def cards_are_set_and_read(c: Caller) -> None:
    honcho = c.honcho()
    alice, bob = await c(honcho).peer("alice"), await c(honcho).peer("bob")
    assert await c(alice).get_card() is None
    assert await c(alice).set_card(["Name: Alice", "Likes tea"]) == ["Name: Alice", "Likes tea"]
    assert await c(alice).get_card() == await c(alice).card() == ["Name: Alice", "Likes tea"]
    assert await c(bob).set_card(["Owes me a book"], target=alice) == ["Owes me a book"]
    assert await c(bob).get_card(target="alice") == ["Owes me a book"]
    assert await c(bob).get_card() is None
    assert await c(alice).get_card() == ["Name: Alice", "Likes tea"]
    lines = await c(alice).set_card(
        [" likes TEA ", "Likes tea", *[f"Fact {number}" for number in range(50)]]
    )
    assert len(lines) == 40
    assert lines[0].strip().casefold() == "likes tea"
    assert lines[1] == "Fact 0"
    assert await c(alice).get_card() == lines
    session = await c(honcho).session("talk", peers=[alice])
    assert (await c(session).context(peer_target="alice")).peer_card == lines
    assert (await c(session).context(peer_target="alice", peer_perspective="bob")).peer_card == [
        "Owes me a book"
    ]
    assert (await c(alice).context()).peer_card == lines
    assert (await c(bob).context(target=alice)).peer_card == ["Owes me a book"]
