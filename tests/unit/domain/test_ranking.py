"""Ranking: worked examples and laws."""

from __future__ import annotations

import math
import random
from itertools import pairwise
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memservice.domain.positions import Position as MessagePosition
from memservice.domain.positions import PositionTable
from memservice.domain.ranking import (
    K1,
    MAX_SHARED,
    MAX_SHORT,
    SIMILARITY_SHARE,
    B,
    Scores,
    best_coverage,
    bm25,
    bm25_with_neighbours,
    fuse,
    idf,
    normalise,
    ranked,
    share_similarities,
)
from memservice.spi.text import TextHit, TextMatches

SCORES = st.dictionaries(st.integers(1, 60), st.floats(0, 50), max_size=30)


def test_bm25_equals_the_formula() -> None:
    matches = TextMatches(
        10, 5.0, {"a": 2, "b": 9}, [TextHit(1, {"a": 1, "b": 2}, 5), TextHit(2, {"b": 1}, 20)]
    )
    scores = bm25(matches)
    ia, ib = math.log(1 + 8.5 / 2.5), math.log(1 + 1.5 / 9.5)
    assert scores[1] == pytest.approx(ia * 2.2 / 2.2 + ib * 2 * 2.2 / (2 + 1.2))
    assert scores[2] == pytest.approx(ib * 2.2 / (1 + 1.2 * (0.25 + 0.75 * 4)))


def test_a_rare_term_outweighs_a_common_one_and_a_short_text_a_long_one() -> None:
    frequencies = {"rare": 1, "common": 900}
    hits = [TextHit(1, {"common": 3}, 10), TextHit(2, {"rare": 1}, 10), TextHit(3, {"rare": 1}, 40)]
    assert ranked(bm25(TextMatches(1000, 12.0, frequencies, hits))) == [2, 3, 1]


def test_an_empty_index_scores_nothing() -> None:
    assert bm25(TextMatches(0, 0.0)) == {}
    assert bm25(TextMatches(0, 0.0, {}, [TextHit(1, {"a": 1}, 0)]))[1] >= 0


def test_coverage_is_the_share_of_words_that_one_hit_has_by_their_rarity() -> None:
    hits = [TextHit(1, {"rare": 2}, 3), TextHit(2, {"common": 1, "usual": 1}, 9)]
    matches = TextMatches(1000, 5.0, {"rare": 1, "common": 900, "usual": 900}, hits)
    words = [{"rare": 1.0}, {"common": 1.0}, {"usual": 1.0}]
    rare, common = idf(1000, 1), idf(1000, 900)
    assert best_coverage(matches, words) == pytest.approx(rare / (rare + 2 * common))
    # A word that no text has counts as one that a single text has.
    assert best_coverage(matches, [*words, {"absent": 1.0}]) == pytest.approx(
        rare / (2 * rare + 2 * common)
    )
    relatives = [{"rarely": 1.0, "rare": 0.5}]
    assert best_coverage(matches, relatives) == pytest.approx(0.5)


def test_nothing_covers_no_words() -> None:
    assert best_coverage(TextMatches(10, 5.0), [{"a": 1.0}]) == 0
    assert best_coverage(TextMatches(10, 5.0, {}, [TextHit(1, {"a": 1}, 3)]), []) == 0
    everywhere = TextMatches(1, 5.0, {"a": 1}, [TextHit(1, {"a": 1}, 3)])
    assert best_coverage(everywhere, [{"a": 1.0}]) == 1


@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_idf_is_never_negative(documents: int, frequency: int) -> None:
    assert idf(documents, frequency) >= 0


@given(st.integers(1, 50), st.integers(1, 50), st.integers(1, 300), st.integers(1, 1000))
def test_more_occurrences_never_score_less(tf: int, more: int, length: int, df: int) -> None:
    matches = TextMatches(
        1000, 20.0, {"a": df}, [TextHit(1, {"a": tf}, length), TextHit(2, {"a": tf + more}, length)]
    )
    scores = bm25(matches)
    assert scores[2] >= scores[1] >= 0
    assert scores[2] <= idf(1000, df) * (K1 + 1) + 1e-9
    assert 0 <= B <= 1


def stored_fields(texts: list[list[str]], terms: set[str]) -> dict[int, float]:
    """What two more stored fields would score: one of the words beside a text counts half, one of
    those that are two messages away a quarter. Keys are positions in one session."""

    def words_at(position: int, distance: int) -> list[str]:
        both = (position - distance, position + distance)
        return [word for near in both if 0 <= near < len(texts) for word in texts[near]]

    mean = sum(map(len, texts)) / len(texts)
    scores = {}
    for i, own in enumerate(texts):
        beside, further = words_at(i, 1), words_at(i, 2)
        length = len(own) + len(beside) + 0.5 * len(further)
        norm = K1 * (1 - B + B * length / (mean + 2 * mean + 0.5 * 2 * mean))
        counts = {
            term: own.count(term) + 0.5 * beside.count(term) + 0.25 * further.count(term)
            for term in terms
        }
        frequency = {term: sum(term in text for text in texts) for term in terms}
        scores[i] = sum(
            idf(len(texts), frequency[t]) * (K1 + 1) * tf / (tf + norm)
            for t, tf in counts.items()
            if tf
        )
    return {key: score for key, score in scores.items() if score > 0}


class Position(NamedTuple):
    session_key: int
    seq: int
    tokens: int


WORDS = st.sampled_from(["lake", "paint", "dog", "filler", "noise"])


@given(st.lists(st.lists(WORDS, min_size=4, max_size=4), min_size=1, max_size=12))
def test_neighbours_score_like_stored_fields(texts: list[list[str]]) -> None:
    """Where all texts are of one length: inside the session exactly, at its ends up to the length
    of what is missing there."""
    terms = {"lake", "dog"}
    hits = [
        TextHit(i, {t: text.count(t) for t in terms if t in text}, len(text))
        for i, text in enumerate(texts)
        if terms & set(text)
    ]
    frequencies = {term: sum(term in text for text in texts) for term in terms}
    lent = bm25_with_neighbours(
        TextMatches(len(texts), 4.0, frequencies, hits),
        {i: Position(1, i, 4) for i in range(len(texts))},
    )
    stored = stored_fields(texts, terms)
    assert lent.keys() == stored.keys()
    for key in range(2, len(texts) - 2):
        assert lent.get(key, 0.0) == pytest.approx(stored.get(key, 0.0))


def test_author_and_date_are_not_shared_with_neighbours() -> None:
    positions = {key: Position(1, key, 5) for key in range(1, 6)}
    hit = TextHit(3, {"carolin": 1, "lake": 1}, 5)
    matches = TextMatches(100, 5.0, {"carolin": 40, "lake": 3}, [hit])
    with_head = bm25_with_neighbours(matches, positions, {3: {"carolin"}})
    only_lake = bm25_with_neighbours(
        TextMatches(100, 5.0, {"carolin": 40, "lake": 3}, [TextHit(3, {"lake": 1}, 5)]), positions
    )
    assert {key: with_head[key] for key in (1, 2, 4, 5)} == {
        key: only_lake[key] for key in (1, 2, 4, 5)
    }
    assert with_head[3] > only_lake[3]
    twice = TextMatches(100, 5.0, {"carolin": 40}, [TextHit(3, {"carolin": 2}, 5)])
    assert bm25_with_neighbours(twice, positions, {3: {"carolin"}}).keys() == positions.keys()
    assert bm25_with_neighbours(
        TextMatches(100, 5.0, {"carolin": 40}, [TextHit(3, {"carolin": 1}, 5)]),
        positions,
        {3: {"carolin"}},
    ).keys() == {3}


def test_neighbours_are_in_the_same_session_and_need_positions() -> None:
    matches = TextMatches(10, 5.0, {"lake": 1}, [TextHit(3, {"lake": 1}, 5)])
    positions = {
        3: Position(1, 3, 9),
        4: Position(2, 4, 9),
        5: Position(1, 5, 9),
        6: Position(1, 6, 9),
    }
    assert bm25_with_neighbours(matches, positions).keys() == {3, 5}
    assert bm25_with_neighbours(matches, {}) == pytest.approx(bm25(matches))
    assert bm25_with_neighbours(TextMatches(0, 0.0), {}) == {}


def test_positions_as_arrays_give_the_same_scores() -> None:
    dice = random.Random(1)
    stored = [
        MessagePosition(key, dice.randint(1, 3), 7, key, dice.randint(1, 90), None)
        for key in range(60)
    ]
    hits = [TextHit(key, {"lake": 1 + key % 3}, dice.randint(1, 90)) for key in range(0, 66, 2)]
    matches = TextMatches(100, 30.0, {"lake": 30}, hits)
    plain = {each.key: each for each in dice.sample(stored, len(stored))}
    scores = bm25_with_neighbours(matches, plain)
    assert len(scores) > len(hits)
    assert bm25_with_neighbours(matches, PositionTable.of(stored)) == scores


def neighbour_scores(length: int) -> Scores:
    """Scores of a short message and a hit of this length beside it, in a workspace of answers."""
    matches = TextMatches(100, 300.0, {"lake": 5}, [TextHit(1, {"lake": 6}, length)])
    return bm25_with_neighbours(
        matches, {1: Position(1, 1, length), 2: Position(1, 2, 10), 9: Position(2, 1, 10)}
    )


def test_a_long_message_shares_less_with_its_neighbours() -> None:
    short, limit, long = (neighbour_scores(n)[2] for n in (10, int(MAX_SHARED), 600))
    assert limit > 1.5 * long
    assert limit == pytest.approx(short, rel=0.1)
    assert 9 not in neighbour_scores(600)


def test_a_statement_is_found_between_long_answers() -> None:
    """The message that states something comes before the answers around it that repeat its words,
    however long they are."""
    hits = [
        TextHit(1, {"trellis": 5}, 500),
        TextHit(2, {"trellis": 1, "budget": 1}, 15),
        TextHit(3, {"trellis": 9}, 600),
        TextHit(13, {"trellis": 9, "budget": 2}, 600),
    ]
    matches = TextMatches(100, 300.0, {"trellis": 30, "budget": 30}, hits)
    positions = {hit.key: Position(1, hit.key, hit.length) for hit in hits}
    assert ranked(bm25_with_neighbours(matches, positions))[0] == 2


def test_length_counts_more_where_texts_are_long() -> None:
    """Of two messages with equal words, one twice as long: the ratio of their scores."""

    def ratio(mean: float) -> float:
        lengths = (round(mean), round(2 * mean))
        hits = [TextHit(key, {"lake": 1}, length) for key, length in enumerate(lengths)]
        positions = {key: Position(key, 1, length) for key, length in enumerate(lengths)}
        scores = bm25_with_neighbours(TextMatches(100, mean, {"lake": 5}, hits), positions)
        return scores[0] / scores[1]

    assert ratio(MAX_SHARED / 2) == pytest.approx(ratio(MAX_SHARED))
    assert ratio(200) > ratio(MAX_SHARED) + 0.2


def test_normalise_is_relative_to_the_best() -> None:
    assert normalise({1: 4.0, 2: 1.0, 3: -1.0}) == {1: 1.0, 2: 0.25, 3: 0.0}
    assert normalise({1: 0.0}) == {1: 0.0}
    assert normalise({}) == {}


@given(SCORES)
def test_normalising_keeps_the_order(scores: dict[int, float]) -> None:
    shares = normalise(scores)
    assert all(0 <= share <= 1 for share in shares.values())
    order = ranked(scores)
    assert all(shares[a] >= shares[b] for a, b in pairwise(order))


def test_ties_are_ordered_by_key() -> None:
    assert ranked({3: 1.0, 1: 1.0, 2: 2.0}) == [2, 1, 3]
    assert ranked({3: 1.0, 1: 1.0, 2: 2.0}, 2) == [2, 1]
    assert fuse([[5, 3], [3, 5]]) == [3, 5]


def test_fusion_is_by_reciprocal_rank() -> None:
    # 7: 1/21 + 1/23; 8: 1/22 + 1/22; 9: 1/23 + 1/21 … the middle one twice is worth a little less
    # than first and third
    assert fuse([[7, 8, 9], [9, 8, 7]]) == [7, 9, 8]
    assert fuse([[1, 2, 3], [2, 4]], k=20) == [2, 1, 4, 3]
    assert fuse([[1, 2, 3], [2, 4]], limit=1) == [2]
    assert fuse([[1, 1, 2], []]) == [1, 2]
    assert fuse([]) == []


def test_ranks_count_from_one() -> None:
    """Two third places, 2 / (k + 3), are worth as much as one first place, 1 / (k + 1), if k is 1;
    if ranks began with 0 they were not."""
    third = [[10, 11, 5], [12, 13, 5]]
    assert fuse([*third, [1]], k=1)[:3] == [1, 5, 10], (
        "all three are equal, so the least key comes first"
    )
    assert fuse([*third, [9]], k=0)[0] == 9
    assert fuse([*third, [9]], k=2)[0] == 5


def test_a_small_k_favours_the_first_rank() -> None:
    lists = [[1, *range(10, 20)], [*range(20, 28), 2], [*range(30, 38), 2]]
    assert fuse(lists, k=1)[0] == 1
    assert fuse(lists, k=60)[0] == 2


@given(st.lists(st.lists(st.integers(1, 30), unique=True, max_size=15), max_size=4))
def test_fusion_has_every_key_once_and_ignores_the_order_of_lists(lists: list[list[int]]) -> None:
    fused = fuse(lists)
    assert sorted(fused) == sorted({key for ranking in lists for key in ranking})
    assert fuse(reversed(lists)) == fused


@given(st.lists(st.integers(1, 99), unique=True, max_size=20))
def test_fusion_of_one_list_keeps_its_order(ranking: list[int]) -> None:
    assert fuse([ranking]) == ranking


class At(NamedTuple):
    """A position, with as many fields as ranking needs."""

    session_key: int
    seq: int
    tokens: int = 5


def test_a_short_reply_gets_a_share_of_the_similarity_of_its_question() -> None:
    similarities = {1: 0.8, 2: 0.1, 3: 0.3}
    positions = {1: At(1, 1), 2: At(1, 2), 3: At(1, 9)}
    assert share_similarities(similarities, positions) == pytest.approx(
        {1: 0.8 + SIMILARITY_SHARE * 0.1, 2: 0.1 + SIMILARITY_SHARE * 0.8, 3: 0.3}
    )


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (At(1, 1, MAX_SHORT + 1), At(1, 2)),
        (At(1, 1), At(1, 2, MAX_SHORT + 1)),
        (At(1, 1), At(2, 2)),
        (At(1, 1), At(1, 3)),
    ],
    ids=["a long one gives nothing", "or takes", "another session", "not beside it"],
)
def test_similarities_are_shared_only_between_short_messages_side_by_side(
    first: At, second: At
) -> None:
    similarities = {1: 0.8, 2: 0.1}
    assert share_similarities(similarities, {1: first, 2: second}) == similarities


@given(
    st.dictionaries(st.integers(1, 9), st.floats(0, 1), max_size=9),
    st.lists(
        st.tuples(
            st.integers(1, 9), st.integers(1, 2), st.integers(1, 6), st.sampled_from([5, 99])
        ),
        unique_by=(lambda row: row[0], lambda row: row[1:3]),
    ),
)
def test_similarities_are_shared_in_the_same_way_from_a_table(
    similarities: dict[int, float], rows: list[tuple[int, int, int, int]]
) -> None:
    table = PositionTable.of(
        MessagePosition(key, session, 1, seq, tokens, None) for key, session, seq, tokens in rows
    )
    assert share_similarities(similarities, table) == share_similarities(
        similarities, {key: At(session, seq, tokens) for key, session, seq, tokens in rows}
    )


def test_a_message_without_a_position_keeps_its_similarity() -> None:
    assert share_similarities({1: 0.8, 2: 0.1}, {1: At(1, 1)}) == {1: 0.8, 2: 0.1}


def test_a_weighted_list_counts_by_rank_and_weight() -> None:
    assert fuse([[1, 2]], 20, weighted={3: 1.0, 2: 0.5}) == [2, 1, 3]
    assert fuse([[1, 2]], 20, weighted={3: 0.5}) == [1, 2, 3]
    assert fuse([[1]], 20, weighted={}) == fuse([[1]], 20)
