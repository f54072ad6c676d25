"""How a search found its results, and that this reveals nothing to a key that may not know it."""

from __future__ import annotations

from typing import Any

import pytest

from memservice.domain.records import Message
from memservice.services import conclusions
from memservice.services.auth.principal import Principal
from memservice.services.conclusions import QueryOptions
from memservice.services.erasure import peers as erasure
from memservice.services.retrieval import search
from memservice.services.retrieval.explain import Counts, Explained
from memservice.services.retrieval.search import SearchOptions
from services.conftest import OpenServices
from support.services.services import ME, WORKSPACE, Services

ANN = Principal(workspace_id=WORKSPACE, peer_id="ann")


def explain(
    services: Services,
    query: str,
    limit: int = 10,
    filters: Any = None,
    principal: Principal = ME,
    **where: Any,
) -> Explained[Message]:
    options = SearchOptions(query, limit, filters)
    return search.explain(services.rt, principal, WORKSPACE, options, **where)


def fill(services: Services) -> None:
    services.say(
        "s",
        ("ann", "a heron by the river"),
        ("bob", "where was that"),
        ("ann", "by the bridge"),
    )
    services.say("t", ("bob", "no heron here"), ("ann", "a heron and a heron"))


def test_the_shares_of_the_lists_add_up_to_the_score(services: Services) -> None:
    texts = ("ann likes herons", "ann rows on the river", "ann sings", "herons by the river")
    services.peer("ann")
    services.conclude("ann", "ann", *texts)
    pair = {"observer": "ann", "observed": "ann"}
    explained = conclusions.explain(
        services.rt, ME, WORKSPACE, QueryOptions("herons river", filters=pair)
    )
    assert [row.content for row in explained.rows] == services.ask("herons river", "ann", "ann")
    assert list(explained.lists) == ["text", "vector"]
    for parts in explained.parts:
        shares = [part.share for part in (parts.text, parts.vector) if part is not None]
        assert parts.score == pytest.approx(sum(shares))
    assert [parts.score for parts in explained.parts] == sorted(
        (parts.score for parts in explained.parts), reverse=True
    )
    ranks = sorted(parts.text.rank for parts in explained.parts if parts.text is not None)
    assert ranks == list(range(1, len(ranks) + 1))
    best = explained.parts[0]
    assert best.text is not None
    assert best.text.share == pytest.approx(1 / (explained.fusion_k + best.text.rank))
    assert best.vector is not None
    assert best.vector.rank is not None
    assert best.vector.share == pytest.approx(1 / (explained.fusion_k + best.vector.rank))


def test_the_order_is_that_of_the_search(services: Services) -> None:
    fill(services)
    explained = explain(services, "heron river")
    assert [row.content for row in explained.rows] == services.search("heron river")
    assert list(explained.lists) == ["text"], "the default embedder has no vectors of messages"


def test_a_neighbour_has_a_score_by_text_but_none_of_its_own(services: Services) -> None:
    fill(services)
    parts = {row.content: parts for row, parts in explain(services, "heron").explained}
    neighbour, hit = parts["by the bridge"].text, parts["a heron by the river"].text
    assert neighbour is not None
    assert hit is not None
    assert neighbour.own_score is None
    assert neighbour.score is not None
    assert hit.own_score is not None
    assert hit.own_score > 0


def test_boosts_for_a_named_author_and_day_are_told(open_services: OpenServices) -> None:
    services = open_services(SEARCH_NAME_BOOST="0.5", SEARCH_DATE_BOOST="0.25")
    fill(services)
    today = f"{services.clock():%d %B %Y}"
    boosts = {
        (row.author, parts.boosts.name, parts.boosts.date)
        for row, parts in explain(services, f"the heron that ann saw on {today}").explained
    }
    assert boosts == {("ann", 0.5, 0.25), ("bob", 0.0, 0.25)}
    assert {parts.boosts.name for parts in explain(services, "heron").parts} == {0.0}


def test_what_each_filter_removed_is_counted(services: Services) -> None:
    fill(services)
    assert explain(services, "heron", limit=2).counts == Counts(5, {"limit": 3})
    of_ann = explain(services, "heron", peer_id="ann")
    assert of_ann.counts == Counts(5, {"peer": 2, "limit": 0})
    services.join("t", "carol")
    filters = {"peer_perspective": "carol", "peer_id": "ann"}
    services.say("t", ("ann", "another heron"))
    of_carol = explain(services, "heron", filters=filters)
    assert [row.content for row in of_carol.rows] == ["another heron"]
    assert of_carol.counts == Counts(6, {"peer_perspective": 5, "filters": 0, "limit": 0})
    assert explain(services, "heron", session_id="t", limit=1).counts == Counts(3, {"limit": 2})
    assert explain(services, "heron", session_id="none").counts is None


def test_a_query_of_conclusions_counts_its_distance_and_filters(services: Services) -> None:
    services.peer("ann", "bob")
    services.conclude("ann", "bob", "bob likes herons", "bob rows on the river")
    services.conclude("ann", "bob", "bob likes herons by the river", session=None)
    services.conclude("ann", "ann", "ann likes herons")
    pair = {"observer": "ann", "observed": "bob"}
    where, text = (services.rt, ME, WORKSPACE), "likes herons"
    explained = conclusions.explain(*where, QueryOptions(text, filters=pair))
    assert [row.content for row in explained.rows] == services.ask("likes herons", "ann", "bob")
    assert explained.counts is not None
    assert explained.counts.removed == {"filters": 0, "limit": 0}
    near = conclusions.explain(*where, QueryOptions(text, distance=0.0, filters=pair))
    assert near.counts == Counts(3, {"filters": 0, "distance": 3 - len(near.rows), "limit": 0})
    assert near.counts.removed["distance"] == 1
    with_level = conclusions.explain(
        *where, QueryOptions(text, filters={**pair, "metadata": {"a": 1}})
    )
    assert with_level.rows == []
    assert with_level.counts == Counts(3, {"filters": 3, "limit": 0})


def test_texts_that_a_peer_may_not_read_change_nothing_that_its_key_is_told(
    services: Services,
) -> None:
    """Counts and scores by BM25 depend on all texts of the workspace, so it is told neither."""
    services.say("s", ("ann", "a heron by the river"), ("ann", "a violin by the river"))
    before = explain(services, "heron", principal=ANN, peer_id="ann")
    assert before.rows
    assert before.counts is None
    assert [parts.text for parts in before.parts if parts.text and parts.text.score] == []
    assert any(parts.text is not None for parts in before.parts)
    services.say("secret", *[("bob", f"a heron by the lake {number}") for number in range(30)])
    assert explain(services, "heron", principal=ANN, peer_id="ann") == before
    services.leave("s", "ann")
    services.say("s", ("bob", "another heron"), ("bob", "one more heron"))
    assert explain(services, "heron", principal=ANN, peer_id="ann") == before
    whole = explain(services, "heron", peer_id="ann")
    assert whole.counts is not None
    assert whole.counts.candidates > len(before.rows)


def test_messages_of_a_peer_that_is_being_erased_share_no_words_and_are_not_counted(
    services: Services,
) -> None:
    services.say("s", ("ann", "who was there"), ("bob", "a heron"), ("ann", "I see"))
    assert len(explain(services, "heron").rows) == 3
    erasure.erase(services.rt, ME, WORKSPACE, "bob", "keep")
    explained = explain(services, "heron")
    assert [parts.text for parts in explained.parts] == [None] * len(explained.rows)
    assert explained.counts is not None
    assert explained.counts.candidates == len(explained.rows)
