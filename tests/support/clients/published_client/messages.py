"""Messages: stored in order, listed page by page, found again by id."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

from honcho.http.exceptions import NotFoundError, UnprocessableEntityError  # type: ignore[import-not-found]  # installed in the client's own environment only

from support.clients.published_client.harness import Caller, contents, ids, scenario


@scenario
async def messages_keep_their_order_and_content(c: Caller) -> None:
    honcho = c.honcho()
    alice, bob = await c(honcho).peer("alice"), await c(honcho).peer("bob")
    session = await c(honcho).session("talk")
    odd = [
        "  spaces  and\nlines\t",
        "日本語とemoji 👩‍👩‍👧",
        "ﬁ ligature, é e\u0301",
        '<b>&amp;</b> "quoted" \\ back',
    ]
    texts = ["Hello!", "", *odd, "x" * 25_000]
    messages = await c.talk(
        session, *[((alice, bob)[number % 2], text) for number, text in enumerate(texts)]
    )
    assert len(set(ids(messages))) == len(texts)
    assert {len(message.id) for message in messages} == {21}
    assert {(m.session_id, m.workspace_id) for m in messages} == {("talk", honcho.workspace_id)}
    rows = await c.every(await c(session).messages())
    assert [(m.id, m.peer_id, m.content, m.token_count) for m in rows] == [
        (m.id, m.peer_id, m.content, m.token_count) for m in messages
    ]
    assert [m.token_count for m in messages][:2] == [2, 0]
    assert {peer.id for peer in await c(session).peers()} == {"alice", "bob"}, "authors join"
    one = await c(session).add_messages(alice.message("Bye\u0000 now."))
    assert contents(one) == ["Bye now."]


@scenario
async def messages_are_paged(c: Caller) -> None:
    honcho = c.honcho()
    alice = await c(honcho).peer("alice")
    session = await c(honcho).session("talk")
    texts = [f"number {number}" for number in range(103)]
    for start in range(0, len(texts), 40):
        await c.talk(session, *[(alice, text) for text in texts[start : start + 40]])
    page = await c(session).messages(size=25)
    assert (page.total, page.page, page.size, page.pages) == (103, 1, 25, 5)
    assert page.has_next_page() is True
    second = await page.get_next_page() if hasattr(page, "__aiter__") else page.get_next_page()
    assert contents(second.items) == texts[25:50]
    assert contents(await c.every(page)) == texts
    assert contents(await c.every(await c(session).messages(size=100, reverse=True))) == texts[::-1]
    last = await c(session).messages(page=5, size=25)
    assert (contents(last.items), last.has_next_page()) == (texts[100:], False)
    first_reversed = await c(session).messages(page=2, size=10, reverse=True)
    assert contents(first_reversed.items) == texts[::-1][10:20]
    for options in ({"size": 0}, {"size": 101}, {"page": 0}):
        await c.raises(UnprocessableEntityError, c(session).messages(**options))


@scenario
async def messages_are_filtered(c: Caller) -> None:
    honcho = c.honcho()
    alice, bob = await c(honcho).peer("alice"), await c(honcho).peer("bob")
    session = await c(honcho).session("talk")
    day = datetime(2024, 5, 1, 12, tzinfo=UTC)
    await c(session).add_messages(
        [
            alice.message("zero", metadata={"n": 0, "mood": "good"}, created_at=day),
            bob.message("one", metadata={"n": 1}, created_at=day + timedelta(days=1)),
            alice.message(
                "two", metadata={"n": 2, "mood": "bad"}, created_at=day + timedelta(days=2)
            ),
            bob.message(
                "three " * 30, metadata={"n": "3", "mood": None}, created_at=day + timedelta(days=3)
            ),
        ]
    )

    async def matching(filters: dict[str, Any]) -> list[str]:
        listed: list[str] = [
            text.split()[0]
            for text in contents(await c.every(await c(session).messages(filters=filters, size=3)))
        ]
        return listed

    assert await matching({"peer_id": "alice"}) == ["zero", "two"]
    assert await matching({"peer_id": {"ne": "alice"}}) == ["one", "three"]
    assert await matching({"metadata": {"mood": "bad"}}) == ["two"]
    assert await matching({"metadata": {"n": {"gte": 1}}}) == ["one", "two", "three"]
    assert await matching({"token_count": {"gt": 20}}) == ["three"]
    assert await matching({"created_at": {"gte": "2024-05-02", "lt": "2024-05-04"}}) == [
        "one",
        "two",
    ]
    assert await matching({"AND": [{"peer_id": "bob"}, {"NOT": [{"metadata": {"n": 1}}]}]}) == [
        "three"
    ]
    assert await matching({"session_id": "talk"}) == ["zero", "one", "two", "three"]
    assert await matching({"session_id": "another"}) == []
    await c.raises(UnprocessableEntityError, matching({"content": "zero"}))
    deep: dict[str, Any] = {"peer_id": "alice"}
    for _ in range(6):
        deep = {"AND": [deep]}
    error = await c.raises(UnprocessableEntityError, matching(deep))
    assert "depth" in str(error)


@scenario
async def one_message_is_found_and_its_metadata_changed(c: Caller) -> None:
    honcho = c.honcho()
    alice = await c(honcho).peer("alice")
    session, other = await c(honcho).session("talk"), await c(honcho).session("other")
    (message,) = await c(session).add_messages(alice.message("Keep this.", metadata={"a": 1}))
    same = await c(session).get_message(message.id)
    assert (same.id, same.content, same.metadata, same.created_at) == (
        message.id,
        "Keep this.",
        {"a": 1},
        message.created_at,
    )
    changed = await c(session).update_message(message, {"b": [1, 2]})
    assert (changed.content, changed.metadata) == ("Keep this.", {"b": [1, 2]})
    assert (await c(session).update_message(message.id, {})).metadata == {}
    assert (await c(session).get_message(message.id)).metadata == {}
    error = await c.raises(NotFoundError, c(session).get_message("x" * 21))
    assert "x" * 21 in error.message
    await c.raises(NotFoundError, c(other).get_message(message.id))
    await c.raises(NotFoundError, c(other).update_message(message.id, {"c": 1}))


@scenario
async def times_given_by_the_caller_are_kept(c: Caller) -> None:
    honcho = c.honcho()
    alice = await c(honcho).peer("alice")
    session = await c(honcho).session("talk")
    noon = datetime(2023, 7, 4, 12, 0, 0, 123456, tzinfo=UTC)
    east = datetime(2023, 7, 4, 21, 30, tzinfo=timezone(timedelta(hours=9)))
    await c(session).add_messages(
        [
            alice.message("later", created_at=noon),
            alice.message("earlier", created_at=east - timedelta(days=400)),
            alice.message("text", created_at="2023-07-04T23:59:59Z"),
            alice.message("now"),
        ]
    )
    later, earlier, text, now = await c.every(await c(session).messages())
    assert contents([later, earlier, text, now]) == ["later", "earlier", "text", "now"], (
        "the order is that of arrival"
    )
    assert (later.created_at, earlier.created_at) == (noon, east - timedelta(days=400))
    assert text.created_at == datetime(2023, 7, 4, 23, 59, 59, tzinfo=UTC)
    assert abs(now.created_at - datetime.now(UTC)) < timedelta(seconds=30)


@scenario
async def a_request_is_stored_whole_or_not_at_all(c: Caller) -> None:
    honcho = c.honcho()
    alice = await c(honcho).peer("alice")
    session = await c(honcho).session("talk")
    good = alice.message("good")
    for bad in (
        [good] * 101,
        [],
        [good, alice.message("x" * 25_001)],
        [good, alice.message("m", metadata={f"k{number}": 1 for number in range(101)})],
        [
            good,
            good.model_copy(
                update={"created_at": datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14)))}
            ),
        ],
    ):
        await c.raises(UnprocessableEntityError, c(session).add_messages(bad))
    assert (await c(session).messages()).total == 0
    await c.talk(session, *[(alice, f"number {number}") for number in range(100)])
    assert (await c(session).messages()).total == 100


@scenario
async def writers_at_once_lose_nothing(c: Caller) -> None:
    honcho = c.honcho()
    session = await c(honcho).session("talk")
    peers = [await c(honcho).peer(f"p{number}") for number in range(8)]

    async def speak(peer: Any) -> None:
        for number in range(5):
            await c.talk(
                session, (peer, f"{peer.id} says {number}"), (peer, f"{peer.id} adds {number}")
            )

    await asyncio.gather(*[speak(peer) for peer in peers])
    rows = await c.every(await c(session).messages(size=30))
    assert len(rows) == len(set(ids(rows))) == 80
    for peer in peers:
        mine = [m.content for m in rows if m.peer_id == peer.id]
        assert mine == [
            f"{peer.id} {verb} {number}" for number in range(5) for verb in ("says", "adds")
        ]
    for first, second in zip(rows[::2], rows[1::2], strict=True):
        assert first.content.replace("says", "adds") == second.content, (
            "messages of one request stay together"
        )
