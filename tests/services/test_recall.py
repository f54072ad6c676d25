"""Searching: what is found, in which order, within which bounds."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from typing import Any

import pytest

from memservice.domain.records import Message
from memservice.services import conclusions, messages
from memservice.services.auth.bounds import bounds_for
from memservice.services.messages import Draft
from memservice.services.retrieval import message_ranking
from memservice.services.retrieval import search as retrieval_search
from memservice.services.retrieval.query import analyse_query
from memservice.services.retrieval.search import Search, SearchOptions
from memservice.spi.text import TextMatches
from services.conftest import Begin
from support.services.world import ME, WORKSPACE, Small

WORDS = (
    "heron river lamp stone bridge cloud winter apple boat garden window candle forest meadow "
    "copper violin harbour letter"
).split()


def sentences(number: int, seed: int = 1) -> list[str]:
    chance = random.Random(seed)
    return [f"{' '.join(chance.choices(WORDS, k=8))} {n}" for n in range(number)]


def test_texts_of_other_workspaces_change_neither_results_nor_their_order(small: Small) -> None:
    for place, said in enumerate(sentences(120)):
        small.say(f"s{place % 5}", ("ann" if place % 2 else "bob", said))
    small.conclude("ann", "bob", *sentences(60, 2))
    queries = [
        "heron by the river",
        "violin",
        "copper candle garden winter",
        "what did ann say of the boat",
    ]
    before = [
        (small.search(query, 20), small.ask(query, "ann", "bob", top_k=20)) for query in queries
    ]
    for number in range(3):
        drafts = [
            Draft(" ".join([said, "heron"] * 3), "ann") for said in sentences(100, 10 + number)
        ]
        messages.create(small.rt, ME, f"other{number}", "s0", drafts)
    assert [
        (small.search(query, 20), small.ask(query, "ann", "bob", top_k=20)) for query in queries
    ] == before
    assert all(found for found, _ in before)


@pytest.mark.parametrize(("boost", "first"), [("0", "bob"), ("1", "ann")])
def test_the_peer_that_a_query_names_is_preferred_by_the_boost(
    begin: Begin, boost: str, first: str
) -> None:
    """The name alone, which is a term of what she said, weighs less than the words that bob
    said."""
    small = begin(SEARCH_NAME_BOOST=boost)
    small.say("s", ("bob", "the heron came to the copper lamp by the river"))
    small.say("t", ("ann", "a river"))
    for number in range(8):
        small.say(f"other{number}", ("ann", "violin"))
    assert (
        retrieval_search.search(
            small.rt, ME, WORKSPACE, SearchOptions("ann: heron copper lamp river", 10)
        )[0].author
        == first
    )


def test_equal_messages_come_in_the_order_in_which_they_were_stored(small: Small) -> None:
    for number in range(30):
        small.say(f"s{number}", ("ann", "a heron by the river"))
    with small.rt.storage.read() as tx:
        workspace = tx.workspaces.by_slug(WORKSPACE)
        assert workspace is not None
        found = Search(small.rt, "heron").messages(tx, bounds_for(tx, ME, workspace), 30)
    assert [message.session for message in found] == [f"s{number}" for number in range(30)]


@pytest.mark.parametrize(
    "few", [0, message_ranking.EXACT_RANKING_MAX], ids=["further down the list", "among few"]
)
@pytest.mark.parametrize("wanted", [1, pytest.param(7, marks=pytest.mark.slow), 25])
def test_filtered_searches_continue_until_enough_or_no_rows_are_left(
    begin: Begin, wanted: int, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(message_ranking, "EXACT_RANKING_MAX", few)
    small = begin(SEARCH_DEPTH="10")
    drafts = [
        Draft(
            "the heron stands by the river",
            "ann",
            metadata={"kind": "rare"} if number >= 125 else {},
        )
        for number in range(150)
    ]
    for start in (0, 75):
        messages.create(small.rt, ME, WORKSPACE, f"s{start}", drafts[start : start + 75])
    found = small.search("heron", wanted, {"metadata": {"kind": "rare"}})
    assert len(found) == wanted
    assert small.search("heron", 100, {"metadata": {"kind": "rarer"}}) == []
    assert len(small.search("heron", 100, {"metadata": {"kind": "rare"}})) == 25


@pytest.mark.slow
def test_a_selective_filter_ranks_only_the_matching_rows(
    begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even with very many hits, no list is read to its end. Neighbours count for the remaining
    rows."""
    small = begin(SEARCH_DEPTH="10")
    small.peer("ann", "bob")
    for start in range(0, 2_000, 100):
        drafts = [Draft("the heron stands by the river", "ann") for _ in range(100)]
        drafts[50:51] = (
            [Draft(f"green lamp {start}", "bob", metadata={"n": start})] if start % 500 == 0 else []
        )
        messages.create(small.rt, ME, WORKSPACE, f"s{start}", drafts)
        small.conclude(
            "ann",
            "bob",
            *[f"saw {start + n} herons" for n in range(99)],
            f"owns {start} herons and a boat",
        )
    small.say("far", ("bob", "the heron came"), ("bob", "the heron came to the river"))
    asked: list[int] = []
    search = type(small.rt.storage.text).search

    def counting(
        self: Any, tx: Any, kind: str, workspace: int, terms: Any, k: int, *more: Any
    ) -> TextMatches:
        asked.append(k)
        return search(self, tx, kind, workspace, terms, k, *more)

    monkeypatch.setattr(type(small.rt.storage.text), "search", counting)
    by_bob = small.search("heron river", 10, peer_id="bob")
    assert [text for text in by_bob if "lamp" not in text] == [
        "the heron came to the river",
        "the heron came",
    ]
    assert sorted(text for text in by_bob if "lamp" in text) == [
        f"green lamp {start}" for start in (0, 1000, 1500, 500)
    ]
    assert small.search("heron river", 10, {"metadata": {"n": 500}}) == ["green lamp 500"]
    assert small.search("heron river", 10, {"metadata": {"n": 7}}) == []
    assert small.search("violin", 10, {"metadata": {"n": 500}}) == []
    filters = {"observer": "ann", "observed": "bob", "content": {"icontains": "boat"}}
    held = conclusions.query(small.rt, ME, WORKSPACE, "heron", 50, filters=filters)
    assert sorted(row.content for row in held) == sorted(
        f"owns {start} herons and a boat" for start in range(0, 2_000, 100)
    )
    assert max(asked) <= 50 * message_ranking.CANDIDATES_PER_HIT, asked


def test_a_session_filter_searches_these_sessions_only(small: Small) -> None:
    small.peer("ann", "bob")
    for place, said in enumerate(sentences(120)):
        small.say(f"s{place % 5}", ("ann" if place % 2 else "bob", said))
        small.conclude("ann", "bob", said, session=f"s{place % 5}")
    query = "heron by the river"
    alone = small.search(query, 30, session_id="s1")
    assert alone
    for name in (
        {"session_id": "s1"},
        {"session_id": ["s1"]},
        {"AND": [{"session_id": ["s1", "s2"]}, {"session_id": "s1"}]},
    ):
        assert small.search(query, 30, name) == alone
    both = small.search(query, 200, {"OR": [{"session_id": "s1"}, {"session_id": "s2"}]})
    assert sorted(both) == sorted(
        small.search(query, 200, {"session_id": {"in": ["s1", "s2", "none"]}})
    )
    assert len(both) > len(alone)
    nowhere: tuple[Any, ...] = ([], "none", {"in": []})
    for none in nowhere:
        assert small.search(query, 30, {"session_id": none}) == []
        assert small.search("", 30, {"session_id": none}) == []
    assert set(small.search(query, 200, {"NOT": [{"session_id": "s1"}]})).isdisjoint(alone)
    pair = {"observer": "ann", "observed": "bob"}
    held = conclusions.query(
        small.rt, ME, WORKSPACE, query, 100, filters={**pair, "session_id": "s1"}
    )
    assert {row.session for row in held} == {"s1"}
    assert (
        conclusions.query(small.rt, ME, WORKSPACE, query, filters={**pair, "level": "deductive"})
        == []
    )


def test_a_session_with_few_hits_is_searched_completely(small: Small) -> None:
    for start in range(0, 300, 100):
        small.say(
            "big", *[("ann", f"a heron by the river {start + number}") for number in range(100)]
        )
    small.say(
        "small",
        ("bob", "the lamp is broken"),
        ("bob", "a heron came"),
        ("bob", "nothing else happened"),
        ("bob", "copper wire"),
    )
    found = small.search("heron", 10, session_id="small")
    assert found[0] == "a heron came"
    assert set(found) <= {
        "the lamp is broken",
        "a heron came",
        "nothing else happened",
        "copper wire",
    }
    assert small.search("violin", 10, session_id="small") == []


def test_one_named_peer_is_boosted_and_two_are_not(small: Small) -> None:
    small.peer("caroline", "melanie")
    small.say("a", ("melanie", "the violin lesson went well"))
    small.say("b", ("caroline", "the violin lesson went well"))
    assert [m.author for m in found(small, "violin lesson")] == ["melanie", "caroline"], (
        "the first stored first"
    )
    assert [m.author for m in found(small, "what did Caroline say of the violin lesson")] == [
        "caroline",
        "melanie",
    ]
    assert [m.author for m in found(small, "did Melanie or Caroline have the violin lesson")] == [
        "melanie",
        "caroline",
    ]


def found(small: Small, query: str, limit: int = 10) -> list[Message]:
    return retrieval_search.search(small.rt, ME, WORKSPACE, SearchOptions(query, limit))


@pytest.mark.parametrize("name", ["may", "will", "user", "assistant", "mark"])
def test_ids_that_are_ordinary_words_are_names_only_if_capitalised(small: Small, name: str) -> None:
    small.say("s", ("someone", "we talked of the harbour"), (name, "we talked of the harbour"))

    def named(query: str) -> str | None:
        with small.rt.storage.read() as tx:
            workspace = tx.workspaces.by_slug(WORKSPACE)
            assert workspace is not None
            peer = analyse_query(tx, workspace.key, query).named
        return None if peer is None else peer.slug

    assert named(f"when {name} we see the harbour") is None
    assert named(f"what did {name.title()} say of the harbour") == name
    assert named(f"what did {name.title()} and Someone say") is None, "two are named"


def test_messages_of_a_named_day_are_boosted(small: Small) -> None:
    small.say("a", ("ann", "we met at the harbour"), at=datetime(2023, 5, 7, 12, tzinfo=UTC))
    small.say("b", ("ann", "we met at the harbour"), at=datetime(2023, 5, 8, 12, tzinfo=UTC))
    assert found(small, "harbour on 8 May 2023")[0].created_at.day == 8
    assert found(small, "harbour 2023-05-07")[0].created_at.day == 7


@pytest.mark.parametrize(
    ("query", "hit"),
    [
        ("猫", "猫が好きです。明日は東京へ行きます"),
        ("東京", "猫が好きです。明日は東京へ行きます"),
        ("北京大学在哪里", "我昨天在北京大学学习了中文"),
        ("Strassenbahn", "Die Straßenbahn fährt um acht Uhr ab"),
        ("FÄHRT STRASSENBAHN", "Die Straßenbahn fährt um acht Uhr ab"),
        ('"heron', "a heron by the river"),
        ("heron AND NOT river", "a heron by the river"),
        ("NEAR(heron, 2) OR violin*", "a heron by the river"),
        ("heron'); DROP TABLE messages; --", "a heron by the river"),
        ("heron\0 river", "a heron by the river"),
        ("\ud83d\udc26 heron \u202e", "a heron by the river"),
        ("heron " + "zzyzx " * 1600, "a heron by the river"),
    ],
)
def test_queries_of_every_kind_find_their_subject(small: Small, query: str, hit: str) -> None:
    for number, text in enumerate(
        (
            "猫が好きです。明日は東京へ行きます",
            "我昨天在北京大学学习了中文",
            "Die Straßenbahn fährt um acht Uhr ab",
            "a heron by the river",
            "nothing of that",
        )
    ):
        small.say(f"s{number}", ("ann", text))
    assert small.search(query)[:1] == [hit]


@pytest.mark.parametrize("query", ["", "   ", "?!…", "what is the", "\0"])
def test_a_query_without_terms_finds_the_newest(small: Small, query: str) -> None:
    small.say("s", ("ann", "first"), ("ann", "second"), ("bob", "third"))
    assert small.search(query, 2) == ["third", "second"]
    assert small.search(query, peer_id="ann") == ["second", "first"]
    assert small.search(query, filters={"peer_id": "bob"}) == ["third"]
    small.peer("carl")
    small.conclude("ann", "bob", "likes tea")
    small.clock.advance(minutes=1)
    small.conclude("ann", "bob", "plays chess")
    small.conclude("ann", "carl", "is tall")
    if query == "what is the":  # which has a vector, though no term
        assert set(small.ask(query, "ann", "bob")) == {"plays chess", "likes tea"}
        return
    assert small.ask(query, "ann", "bob") == ["plays chess", "likes tea"]
    assert small.ask(query, "ann", "bob", top_k=1) == ["plays chess"]
    assert small.ask(query, "ann", "bob", distance=0.5) == []
    assert small.represented("ann", target="bob", search_query=query, max_conclusions=1) == [
        "plays chess"
    ]


def test_conclusions_are_found_by_words_within_their_pair(small: Small) -> None:
    small.peer("ann", "bob")
    small.conclude("ann", "bob", "plays the violin", "owns a boat", "likes copper pots")
    small.conclude("bob", "ann", "plays the violin too")
    assert small.ask("who has a violin?", "ann", "bob")[0] == "plays the violin"
    assert small.ask("violin", "bob", "ann") == ["plays the violin too"]
    assert small.ask("violin", "ann", "ann") == []
    assert small.ask("violin", "ann", "nobody") == []
    assert len(small.ask("violin", "ann", "bob", top_k=2)) == 2, "the nearest fill up"


def test_results_never_exceed_the_limit_nor_repeat(small: Small) -> None:
    for number in range(60):
        small.say("s", ("ann", f"a heron by the river {number % 7}"))
    for limit in (1, 3, 50, 100):
        keys = [message.key for message in found(small, "heron river", limit)]
        assert len(keys) == min(limit, 60)
        assert len(set(keys)) == len(keys)
