"""Search over messages, of a workspace, a peer, a session."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from honcho.http.exceptions import UnprocessableEntityError  # type: ignore[import-not-found]  # in the client's own environment only

from support.clients.published_client.harness import Caller, contents, scenario

PETS = "My tortoise Balthazar escaped through the hole in the garden fence again."
TRAIN = "The night train to Narvik was three hours late because of snow."
RECIPE = "For the curry you need coconut milk, lemongrass and two limes."
FENCE = "Tomorrow I will mend the fence with the leftover planks."
FILLER = [f"Item {number} on the shopping list is not very interesting." for number in range(30)]


async def conversation(c: Caller) -> tuple[Any, dict[str, Any]]:
    honcho = c.honcho()
    alice = await c(honcho).peer("alice", metadata={"name": "Alice"})
    bob = await c(honcho).peer("bob")
    home, travel = await c(honcho).session("home"), await c(honcho).session("travel")
    await c.talk(
        home, (alice, PETS), (bob, RECIPE), (alice, FENCE), *[(bob, text) for text in FILLER]
    )
    await c.talk(travel, (bob, TRAIN), (alice, "I sat beside a man with a tortoise in a basket."))
    return honcho, {"alice": alice, "bob": bob, "home": home, "travel": travel}


@scenario
async def search_finds_what_was_said(c: Caller) -> None:
    honcho, at = await conversation(c)
    assert contents(await c(honcho).search("Balthazar"))[0] == PETS
    assert contents(await c(honcho).search("who was late because of the snow?"))[0] == TRAIN
    assert contents(await c(honcho).search("coconut curry, what do I need"))[0] == RECIPE
    assert contents(await c(honcho).search("FENCE planks"))[0] == FENCE
    (best, *_) = await c(honcho).search("night train Narvik", limit=1)
    assert (best.peer_id, best.session_id, best.workspace_id, best.content) == (
        "bob",
        "travel",
        honcho.workspace_id,
        TRAIN,
    )
    assert contents(await c(at["home"]).search("tortoise"))[0] == PETS
    assert {m.session_id for m in await c(at["home"]).search("tortoise", limit=50)} == {"home"}
    assert contents(await c(at["travel"]).search("tortoise"))[0].startswith("I sat beside")
    assert {
        m.peer_id for m in await c(at["alice"]).search("tortoise train curry fence", limit=50)
    } == {"alice"}
    assert contents(await c(at["bob"]).search("train"))[0] == TRAIN
    assert await c(await c(honcho).peer("stranger")).search("tortoise") == []


@scenario
async def search_obeys_filters_and_limits(c: Caller) -> None:
    honcho, at = await conversation(c)
    assert len(await c(honcho).search("item shopping list")) == 10
    assert len(await c(honcho).search("item shopping list", limit=25)) == 25
    hits = await c(honcho).search("tortoise", filters={"peer_id": "alice", "session_id": "travel"})
    assert {(m.peer_id, m.session_id) for m in hits} == {("alice", "travel")}
    assert await c(honcho).search("tortoise", filters={"created_at": {"lt": "2000-01-01"}}) == []
    assert await c(honcho).search("tortoise", filters={"peer_id": {"in": []}}) == []
    await c.raises(UnprocessableEntityError, c(honcho).search("tortoise", filters={"nonsense": 1}))
    dated = datetime(2019, 3, 2, tzinfo=UTC)
    await c(at["travel"]).add_messages(
        at["alice"].message("We saw whales.", metadata={"trip": "north"}, created_at=dated)
    )
    assert contents(await c(honcho).search("whales", filters={"metadata": {"trip": "north"}})) == [
        "We saw whales."
    ]
    assert contents(
        await c(honcho).search("whales", filters={"created_at": {"lte": "2019-03-02"}})
    ) == ["We saw whales."]
    assert await c(honcho).search("whales", filters={"metadata": {"trip": "south"}}) == []


@scenario
async def search_stays_within_its_workspace(c: Caller) -> None:
    honcho, _ = await conversation(c)
    other = c.honcho()
    peer, session = await c(other).peer("alice"), await c(other).session("home")
    assert await c(other).search("Balthazar") == []
    await c.talk(session, (peer, "Balthazar is the name of my horse."))
    assert contents(await c(other).search("Balthazar tortoise garden")) == [
        "Balthazar is the name of my horse."
    ]
    assert "Balthazar is the name of my horse." not in contents(
        await c(honcho).search("Balthazar horse", limit=100)
    )


@scenario
async def search_takes_any_text(c: Caller) -> None:
    honcho, _ = await conversation(c)
    for query in (
        "?!",
        '"Balthazar',
        "NOT AND OR NEAR(",
        "*",
        "a-b:c^2",
        "100%_\\",
        "Balthazar\u0000",
        "🐢",
        "…" * 500,
        "word " * 2000,
    ):
        hits = await c(honcho).search(query)
        assert len(hits) <= 10
    assert PETS in contents(await c(honcho).search('Balthazar" OR "fence', limit=2))
    session = await c(honcho).session("world")
    peer = await c(honcho).peer("yuki")
    await c.talk(
        session,
        (peer, "私の犬の名前はポチです。"),
        (peer, "昨日は京都で抹茶を飲みました。"),
        (peer, "Кошку зовут Мурка."),
    )
    assert contents(await c(honcho).search("京都の抹茶"))[0] == "昨日は京都で抹茶を飲みました。"
    assert contents(await c(honcho).search("犬の名前"))[0] == "私の犬の名前はポチです。"
    assert contents(await c(honcho).search("кошку"))[0] == "Кошку зовут Мурка."
