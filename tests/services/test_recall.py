"""Searching: what is found, in which order, within which bounds."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from memservice.domain.records import Message
from memservice.services import conclusions, messages
from memservice.services.auth.bounds import bounds_for
from memservice.services.indexing import CONCLUSION, MESSAGE
from memservice.services.messages import Draft
from memservice.services.retrieval import conclusion_ranking, message_ranking
from memservice.services.retrieval import search as retrieval_search
from memservice.services.retrieval.message_ranking import MessageRanking
from memservice.services.retrieval.query import analyse_query
from memservice.services.retrieval.search import Search, SearchOptions
from memservice.services.retrieval.text_matches import TextCandidates
from memservice.spi.text import TextHit, TextMatches
from services.conftest import OpenServices
from support.services.services import ME, WORKSPACE, Services

WORDS = (
    "heron river lamp stone bridge cloud winter apple boat garden window candle forest meadow "
    "copper violin harbour letter"
).split()


def sentences(number: int, seed: int = 1) -> list[str]:
    chance = random.Random(seed)
    return [f"{' '.join(chance.choices(WORDS, k=8))} {n}" for n in range(number)]


@pytest.mark.slow
def test_texts_of_other_workspaces_change_neither_results_nor_their_order(
    services: Services,
) -> None:
    for index, text in enumerate(sentences(120)):
        services.say(f"s{index % 5}", ("ann" if index % 2 else "bob", text))
    services.conclude("ann", "bob", *sentences(60, 2))
    queries = [
        "heron by the river",
        "violin",
        "copper candle garden winter",
        "what did ann say of the boat",
    ]
    before = [
        (services.search(query, 20), services.ask(query, "ann", "bob", top_k=20))
        for query in queries
    ]
    for number in range(3):
        drafts = [
            Draft(" ".join([text, "heron"] * 3), "ann") for text in sentences(100, 10 + number)
        ]
        messages.create(services.rt, ME, f"other{number}", "s0", drafts)
    assert [
        (services.search(query, 20), services.ask(query, "ann", "bob", top_k=20))
        for query in queries
    ] == before
    assert all(hits for hits, _ in before)


@pytest.mark.parametrize(("boost", "first"), [("0", "bob"), ("1", "ann")])
def test_the_peer_that_a_query_names_is_preferred_by_the_boost(
    open_services: OpenServices, boost: str, first: str
) -> None:
    """The name alone, which is a term of what she said, weighs less than the words that bob
    said."""
    services = open_services(SEARCH_NAME_BOOST=boost)
    services.say("s", ("bob", "the heron came to the copper lamp by the river"))
    services.say("t", ("ann", "a river"))
    for number in range(8):
        services.say(f"other{number}", ("ann", "violin"))
    assert (
        retrieval_search.search(
            services.rt, ME, WORKSPACE, SearchOptions("ann: heron copper lamp river", 10)
        )[0].author
        == first
    )


@pytest.mark.slow
def test_equal_messages_come_in_the_order_in_which_they_were_stored(services: Services) -> None:
    for number in range(30):
        services.say(f"s{number}", ("ann", "a heron by the river"))
    with services.rt.storage.read() as tx:
        workspace = tx.workspaces.by_slug(WORKSPACE)
        assert workspace is not None
        hits = Search(services.rt, "heron").messages(tx, bounds_for(tx, ME, workspace), 30)
    assert [message.session for message in hits] == [f"s{number}" for number in range(30)]


@pytest.mark.slow
@pytest.mark.parametrize(
    "few", [0, message_ranking.EXACT_RANKING_MAX], ids=["further down the list", "among few"]
)
@pytest.mark.parametrize("limit", [1, 7, 25])
def test_filtered_searches_continue_until_enough_or_no_rows_are_left(
    open_services: OpenServices, limit: int, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(message_ranking, "EXACT_RANKING_MAX", few)
    services = open_services(SEARCH_DEPTH="10")
    drafts = [
        Draft(
            "the heron stands by the river",
            "ann",
            metadata={"kind": "rare"} if number >= 125 else {},
        )
        for number in range(150)
    ]
    for start in (0, 75):
        messages.create(services.rt, ME, WORKSPACE, f"s{start}", drafts[start : start + 75])
    hits = services.search("heron", limit, {"metadata": {"kind": "rare"}})
    assert len(hits) == limit
    assert services.search("heron", 100, {"metadata": {"kind": "rarer"}}) == []
    assert len(services.search("heron", 100, {"metadata": {"kind": "rare"}})) == 25


@pytest.mark.slow
def test_a_selective_filter_ranks_only_the_matching_rows(
    open_services: OpenServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even with very many hits, no list is read to its end. Neighbours count for the remaining
    rows."""
    services = open_services(SEARCH_DEPTH="10")
    services.peer("ann", "bob")
    for start in range(0, 2_000, 100):
        drafts = [Draft("the heron stands by the river", "ann") for _ in range(100)]
        drafts[50:51] = (
            [Draft(f"green lamp {start}", "bob", metadata={"n": start})] if start % 500 == 0 else []
        )
        messages.create(services.rt, ME, WORKSPACE, f"s{start}", drafts)
        services.conclude(
            "ann",
            "bob",
            *[f"saw {start + n} herons" for n in range(99)],
            f"owns {start} herons and a boat",
        )
    services.say("far", ("bob", "the heron came"), ("bob", "the heron came to the river"))
    candidate_counts: dict[str, list[int]] = {MESSAGE: [], CONCLUSION: []}
    search = type(services.rt.storage.text).search

    def counting(
        self: Any, tx: Any, kind: str, workspace: int, terms: Any, k: int, *more: Any
    ) -> TextMatches:
        candidate_counts[kind].append(k)
        return search(self, tx, kind, workspace, terms, k, *more)

    monkeypatch.setattr(type(services.rt.storage.text), "search", counting)
    by_bob = services.search("heron river", 10, peer_id="bob")
    assert [text for text in by_bob if "lamp" not in text] == [
        "the heron came to the river",
        "the heron came",
    ]
    assert sorted(text for text in by_bob if "lamp" in text) == [
        f"green lamp {start}" for start in (0, 1000, 1500, 500)
    ]
    assert services.search("heron river", 10, {"metadata": {"n": 500}}) == ["green lamp 500"]
    assert services.search("heron river", 10, {"metadata": {"n": 7}}) == []
    assert services.search("violin", 10, {"metadata": {"n": 500}}) == []
    filters = {"observer": "ann", "observed": "bob", "content": {"icontains": "boat"}}
    rows = conclusions.query(services.rt, ME, WORKSPACE, "heron", 50, filters=filters)
    assert sorted(row.content for row in rows) == sorted(
        f"owns {start} herons and a boat" for start in range(0, 2_000, 100)
    )
    for kind, most in (
        (MESSAGE, message_ranking.CANDIDATES_PER_HIT),
        (CONCLUSION, conclusion_ranking.CANDIDATES_PER_HIT),
    ):
        assert 0 < max(candidate_counts[kind]) <= 50 * most, candidate_counts


@pytest.mark.slow
def test_a_search_of_a_large_workspace_scores_fewer_candidates(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    services.peer("ann", "bob")
    services.say("s", *(("ann" if n % 2 else "bob", f"heron {n}") for n in range(20)))
    candidate_counts: list[int] = []
    search = type(services.rt.storage.text).search

    def counting(
        self: Any, tx: Any, kind: str, workspace: int, terms: Any, k: int, *more: Any
    ) -> TextMatches:
        if kind == MESSAGE:
            candidate_counts.append(k)
        return search(self, tx, kind, workspace, terms, k, *more)

    monkeypatch.setattr(type(services.rt.storage.text), "search", counting)
    depth = services.rt.settings.search.depth
    expected = services.search("heron", 20)
    monkeypatch.setattr(message_ranking, "VERY_MANY_MESSAGES", 19)
    assert services.search("heron", 20) == expected
    services.search("heron", 20, session_id="s")
    monkeypatch.setattr(message_ranking, "VERY_MANY_MESSAGES", 20)
    services.search("heron", 20)
    assert candidate_counts == [4 * depth, 2 * depth, 2 * depth, 4 * depth]


@pytest.mark.slow
def test_the_best_candidates_of_a_large_workspace_are_scored_with_their_neighbours(
    open_services: OpenServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many as a list has, and as the caller asked for."""
    services = open_services(SEARCH_DEPTH="20")
    services.peer("ann", "bob")
    for start in range(0, 500, 100):
        lines = [f"a {'heron' if n % 3 == 0 else 'boat'} {n}" for n in range(start, start + 100)]
        services.say("s", *(("ann", line) for line in lines))
    services.say("few", ("ann", "a heron"), ("ann", "another heron"))
    counts: list[int] = []
    around = MessageRanking._around

    def counting(self: MessageRanking, keys: Sequence[int]) -> Any:
        counts.append(len(keys))
        return around(self, keys)

    monkeypatch.setattr(MessageRanking, "_around", counting)
    services.search("heron", 3)
    monkeypatch.setattr(message_ranking, "MANY_MESSAGES", 299)
    services.search("heron", 3)
    services.search("heron", 20)
    services.search("heron", 3, session_id="s")
    services.search("heron", 3, session_id="few")
    assert [number for number in counts if number] == [80, 23, 40, 23, 2]


def test_the_best_candidates_are_those_with_the_best_scores_of_their_own() -> None:
    hits = [TextHit(1, {"heron": 1}, 9), TextHit(2, {"heron": 2}, 9), TextHit(3, {"heron": 1}, 2)]
    matches = TextMatches(10, 5.0, {"heron": 3}, hits)
    candidates = TextCandidates(matches, [{"heron": 1.0}], is_complete=True)
    best = candidates.best(2)
    assert [hit.key for hit in best.matches.hits] == [2, 3]
    assert (best.is_complete, candidates.best(3)) == (False, candidates)


@pytest.mark.slow
def test_a_peers_search_ranks_once_if_it_wrote_half_of_the_messages(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    for start in range(0, 400, 100):
        lines = [("ann" if n % 2 else "bob", f"heron {start + n}") for n in range(100)]
        services.say("s", *lines)
    depths: list[int] = []
    search = type(services.rt.storage.text).search

    def counting(
        self: Any, tx: Any, kind: str, workspace: int, terms: Any, k: int, *more: Any
    ) -> TextMatches:
        if kind == MESSAGE:  # another search is that of derived conclusions
            depths.append(k)
        return search(self, tx, kind, workspace, terms, k, *more)

    monkeypatch.setattr(type(services.rt.storage.text), "search", counting)
    assert len(services.search("heron", 100, peer_id="bob")) == 100
    assert len(depths) == 1


@pytest.mark.slow
def test_a_session_filter_searches_these_sessions_only(services: Services) -> None:
    services.peer("ann", "bob")
    for index, text in enumerate(sentences(120)):
        services.say(f"s{index % 5}", ("ann" if index % 2 else "bob", text))
        services.conclude("ann", "bob", text, session=f"s{index % 5}")
    query = "heron by the river"
    alone = services.search(query, 30, session_id="s1")
    assert alone
    for name in (
        {"session_id": "s1"},
        {"session_id": ["s1"]},
        {"AND": [{"session_id": ["s1", "s2"]}, {"session_id": "s1"}]},
    ):
        assert services.search(query, 30, name) == alone
    both = services.search(query, 200, {"OR": [{"session_id": "s1"}, {"session_id": "s2"}]})
    assert sorted(both) == sorted(
        services.search(query, 200, {"session_id": {"in": ["s1", "s2", "none"]}})
    )
    assert len(both) > len(alone)
    nowhere: tuple[Any, ...] = ([], "none", {"in": []})
    for none in nowhere:
        assert services.search(query, 30, {"session_id": none}) == []
        assert services.search("", 30, {"session_id": none}) == []
    assert set(services.search(query, 200, {"NOT": [{"session_id": "s1"}]})).isdisjoint(alone)
    pair = {"observer": "ann", "observed": "bob"}
    rows = conclusions.query(
        services.rt, ME, WORKSPACE, query, 100, filters={**pair, "session_id": "s1"}
    )
    assert {row.session for row in rows} == {"s1"}
    assert (
        conclusions.query(services.rt, ME, WORKSPACE, query, filters={**pair, "level": "deductive"})
        == []
    )


@pytest.mark.slow
def test_a_session_with_few_hits_is_searched_completely(services: Services) -> None:
    for start in range(0, 300, 100):
        services.say(
            "big", *[("ann", f"a heron by the river {start + number}") for number in range(100)]
        )
    services.say(
        "small",
        ("bob", "the lamp is broken"),
        ("bob", "a heron came"),
        ("bob", "nothing else happened"),
        ("bob", "copper wire"),
    )
    hits = services.search("heron", 10, session_id="small")
    assert hits[0] == "a heron came"
    assert set(hits) <= {
        "the lamp is broken",
        "a heron came",
        "nothing else happened",
        "copper wire",
    }
    assert services.search("violin", 10, session_id="small") == []


def test_one_named_peer_is_boosted_and_two_are_not(services: Services) -> None:
    services.peer("caroline", "melanie")
    services.say("a", ("melanie", "the violin lesson went well"))
    services.say("b", ("caroline", "the violin lesson went well"))
    assert [m.author for m in search_results(services, "violin lesson")] == [
        "melanie",
        "caroline",
    ], "the first stored first"
    assert [
        m.author for m in search_results(services, "what did Caroline say of the violin lesson")
    ] == [
        "caroline",
        "melanie",
    ]
    assert [
        m.author for m in search_results(services, "did Melanie or Caroline have the violin lesson")
    ] == [
        "melanie",
        "caroline",
    ]


def search_results(services: Services, query: str, limit: int = 10) -> list[Message]:
    return retrieval_search.search(services.rt, ME, WORKSPACE, SearchOptions(query, limit))


@pytest.mark.parametrize("name", ["may", "will", "user", "assistant", "mark"])
def test_ids_that_are_ordinary_words_are_names_only_if_capitalised(
    services: Services, name: str
) -> None:
    services.say("s", ("someone", "we talked of the harbour"), (name, "we talked of the harbour"))

    def named(query: str) -> str | None:
        with services.rt.storage.read() as tx:
            workspace = tx.workspaces.by_slug(WORKSPACE)
            assert workspace is not None
            peer = analyse_query(tx, workspace.key, query).named
        return None if peer is None else peer.slug

    assert named(f"when {name} we see the harbour") is None
    assert named(f"what did {name.title()} say of the harbour") == name
    assert named(f"what did {name.title()} and Someone say") is None, "two are named"


def test_messages_of_a_named_day_are_boosted(services: Services) -> None:
    services.say("a", ("ann", "we met at the harbour"), at=datetime(2023, 5, 7, 12, tzinfo=UTC))
    services.say("b", ("ann", "we met at the harbour"), at=datetime(2023, 5, 8, 12, tzinfo=UTC))
    assert search_results(services, "harbour on 8 May 2023")[0].created_at.day == 8
    assert search_results(services, "harbour 2023-05-07")[0].created_at.day == 7


@pytest.mark.slow
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
def test_queries_of_every_kind_find_their_subject(services: Services, query: str, hit: str) -> None:
    for number, text in enumerate(
        (
            "猫が好きです。明日は東京へ行きます",
            "我昨天在北京大学学习了中文",
            "Die Straßenbahn fährt um acht Uhr ab",
            "a heron by the river",
            "nothing of that",
        )
    ):
        services.say(f"s{number}", ("ann", text))
    assert services.search(query)[:1] == [hit]


@pytest.mark.parametrize("query", ["", "   ", "?!…", "what is the", "\0"])
def test_a_query_without_terms_finds_the_newest(services: Services, query: str) -> None:
    services.say("s", ("ann", "first"), ("ann", "second"), ("bob", "third"))
    assert services.search(query, 2) == ["third", "second"]
    assert services.search(query, peer_id="ann") == ["second", "first"]
    assert services.search(query, filters={"peer_id": "bob"}) == ["third"]
    services.peer("carl")
    services.conclude("ann", "bob", "likes tea")
    services.clock.advance(minutes=1)
    services.conclude("ann", "bob", "plays chess")
    services.conclude("ann", "carl", "is tall")
    if query == "what is the":  # which has a vector, though no term
        assert set(services.ask(query, "ann", "bob")) == {"plays chess", "likes tea"}
        return
    assert services.ask(query, "ann", "bob") == ["plays chess", "likes tea"]
    assert services.ask(query, "ann", "bob", top_k=1) == ["plays chess"]
    assert services.ask(query, "ann", "bob", distance=0.5) == []
    assert services.represented("ann", target="bob", search_query=query, max_conclusions=1) == [
        "plays chess"
    ]


def test_conclusions_are_found_by_words_within_their_pair(services: Services) -> None:
    services.peer("ann", "bob")
    services.conclude("ann", "bob", "plays the violin", "owns a boat", "likes copper pots")
    services.conclude("bob", "ann", "plays the violin too")
    assert services.ask("who has a violin?", "ann", "bob")[0] == "plays the violin"
    assert services.ask("violin", "bob", "ann") == ["plays the violin too"]
    assert services.ask("violin", "ann", "ann") == []
    assert services.ask("violin", "ann", "nobody") == []
    assert len(services.ask("violin", "ann", "bob", top_k=2)) == 2, "the nearest fill up"


@pytest.mark.slow
def test_results_never_exceed_the_limit_nor_repeat(services: Services) -> None:
    for number in range(60):
        services.say("s", ("ann", f"a heron by the river {number % 7}"))
    for limit in (1, 3, 50, 100):
        keys = [message.key for message in search_results(services, "heron river", limit)]
        assert len(keys) == min(limit, 60)
        assert len(set(keys)) == len(keys)
