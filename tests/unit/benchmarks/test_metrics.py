"""The yardsticks themselves: measures by hand, the generator's promises, and the loaders on small
samples."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.neighbours import METHODS, Indexed, measure
from memservice.domain.text.analysis import analyse
from memservice_bench.builtin import conversation, conversations
from memservice_bench.metrics import (
    MEASURES,
    coverage,
    difference,
    figure,
    ndcg_at,
    recall_at,
    reciprocal_rank,
    within,
)
from memservice_bench.public_sets import load_beam, load_locomo


def test_recall_counts_evidence_among_the_first() -> None:
    assert recall_at([5, 1, 9, 2], {1, 2, 3}, 2) == pytest.approx(1 / 3)
    assert recall_at([5, 1, 9, 2], {1, 2, 3}, 10) == pytest.approx(2 / 3)
    assert recall_at([], {1}, 10) == 0


def test_reciprocal_rank_is_of_the_first_piece() -> None:
    assert reciprocal_rank([5, 6, 2, 1], {1, 2}) == pytest.approx(1 / 3)
    assert reciprocal_rank([5], {1}) == 0


def test_ndcg_is_one_for_the_best_order_only() -> None:
    assert ndcg_at([1, 2, 5, 6], {1, 2}) == pytest.approx(1)
    assert ndcg_at([1, 5, 2], {1, 2}) == pytest.approx((1 + 1 / 2) / (1 + 1 / 1.584962500721156))
    assert ndcg_at([5, 6], {1}) == 0
    assert ndcg_at([1] + [9] * 10, set(range(1, 21)), 10) < 1


def test_coverage_is_limited_by_the_budget() -> None:
    sizes = {1: 40, 2: 50, 3: 20, 4: 5}
    assert within([1, 2, 3, 4], sizes, 100) == [1, 2]
    assert within([1, 2, 3, 4], sizes, 110) == [1, 2, 3]
    assert coverage([1, 2, 3, 4], {2, 4}, sizes, 100) == 0.5
    assert coverage([1], {1}, sizes, 10) == 0


def test_intervals_hold_the_mean_and_shrink_with_questions() -> None:
    few, many = figure([0.0, 1.0] * 10), figure([0.0, 1.0] * 1000)
    assert few.mean == many.mean == 50
    assert few.low < 50 < few.high
    assert few.high - few.low > 5 * (many.high - many.low)
    assert figure([0.0, 1.0] * 10) == few
    assert str(figure([1.0] * 5)).split() == ["100.0", "±0.0"]
    with pytest.raises(ValueError):
        figure([])


def test_a_paired_difference_has_a_smaller_interval_than_two_means() -> None:
    base = [i % 10 / 10 for i in range(200)]
    change = difference(base, [value + 0.05 for value in base])
    assert change.mean == pytest.approx(5)
    assert change.high - change.low < 0.01
    with pytest.raises(ValueError):
        difference([1.0], [1.0, 2.0])


def test_conversations_are_the_same_for_a_seed_and_differ_between_seeds() -> None:
    assert conversations(3, 4, 20) == conversations(3, 4, 20)
    assert conversation(3, 0).turns != conversation(4, 0).turns


@pytest.mark.slow
def test_every_question_has_evidence_in_its_own_conversation() -> None:
    generated = conversations(1, 16, 40)
    assert {c.language for c in generated} == {"en", "de", "es", "ja", "zh"}
    for one in generated:
        keys = [turn.key for turn in one.turns]
        assert keys == list(range(1, len(keys) + 1))
        assert all(
            question.evidence and question.evidence <= set(keys) for question in one.questions
        )
        positions = [(turn.session, turn.seq) for turn in one.turns]
        assert positions == sorted(set(positions))
        assert [turn.at for turn in one.turns] == sorted(turn.at for turn in one.turns)
        assert {turn.speaker for turn in one.turns} == set(one.speakers)
        assert not any("{" in turn.text for turn in one.turns)
        assert not any("{" in question.text for question in one.questions)
    categories = {question.category for one in generated for question in one.questions}
    assert categories >= {
        "near",
        "own",
        "far",
        "short-answer",
        "unnamed",
        "update",
        "contradiction",
        "multi-hop",
        "dated",
        "abroad",
    }


@pytest.mark.slow
def test_an_update_asks_for_the_later_statement() -> None:
    for number in range(6):
        one = conversation(5, number)
        turns = {turn.key: turn for turn in one.turns}
        for question in one.questions:
            if question.category == "update":
                (key,) = question.evidence
                assert turns[key].session > 1


def test_sets_of_any_size_can_be_generated() -> None:
    assert len(conversation(1, 0, idle=2000).turns) > 4000 > len(conversation(1, 0, idle=0).turns)


@pytest.mark.slow
def test_word_overlap_alone_does_not_find_most_evidence() -> None:
    """The set has to stay hard: most evidence shares no word, names apart, with its question."""
    shared = total = 0
    for one in conversations(1, 3):
        turns = {turn.key: turn for turn in one.turns}
        names = {term for speaker in one.speakers for term in analyse(speaker)}
        for question in one.questions:
            terms = set(analyse(question.text)) - names
            total += len(question.evidence)
            shared += sum(
                not terms.isdisjoint(analyse(turns[key].text)) for key in question.evidence
            )
    assert 0.2 < shared / total < 0.7


@pytest.mark.slow
def test_neighbours_find_more_than_own_text_and_every_method_is_measured() -> None:
    methods = {name: METHODS[name] for name in ("own (speaker, date)", "query time, lent counts")}
    results = measure(conversations(2, 2, 40), methods, boost=True)
    own, lent = (results[name]["r@10"]["all"] for name in methods)
    assert len(own) == len(lent) > 100
    assert difference(own, lent).low > 0
    assert all(set(by_measure) == set(MEASURES) for by_measure in results.values())
    assert all(
        0 <= value <= 1
        for by_measure in results.values()
        for values in by_measure.values()
        for value in values["all"]
    )


def test_a_conversation_is_indexed_once_per_turn() -> None:
    data = Indexed(conversation(1, 0, idle=5))
    assert (
        set(data.own)
        == set(data.raw)
        == set(data.sizes)
        == set(data.positions)
        == {turn.key for turn in data.source.turns}
    )


def test_locomo_is_read_with_its_messy_evidence(tmp_path: Path) -> None:
    turns = [
        {"speaker": "Ann", "dia_id": "D1:1", "text": "Hi!"},
        {"speaker": "Ben", "dia_id": "D1:2", "text": "Look", "blip_caption": "a photo of a boat"},
    ]
    later = [{"speaker": "Ann", "dia_id": "D2:1", "text": "Sold it."}]
    sample = {
        "sample_id": "c-1",
        "conversation": {
            "speaker_a": "Ann",
            "speaker_b": "Ben",
            "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_1": turns,
            "session_2_date_time": "9:00 am on 9 June, 2023",
            "session_2": later,
            "session_3_date_time": "9:00 am on 10 June, 2023",
        },
        "qa": [
            {"question": "Which boat?", "answer": "x", "evidence": ["D1:2; D2:01"], "category": 1},
            {"question": "Who?", "answer": "x", "evidence": [], "category": 3},
            {
                "question": "Trick?",
                "adversarial_answer": "x",
                "evidence": ["D1:1", "D9:9"],
                "category": 5,
            },
        ],
    }
    path = tmp_path / "locomo.json"
    path.write_text(json.dumps([sample]), "utf-8")
    (one,) = load_locomo(path)
    assert [(t.key, t.session, t.seq, t.speaker) for t in one.turns] == [
        (1, 1, 1, "Ann"),
        (2, 1, 2, "Ben"),
        (3, 2, 1, "Ann"),
    ]
    assert one.turns[1].text == "Look [shares a photo of a boat]"
    assert one.turns[0].at.isoformat() == "2023-05-08T13:56:30+00:00"
    assert [(q.category, set(q.evidence)) for q in one.questions] == [
        ("multi-hop", {2, 3}),
        ("adversarial", {1}),
    ]
    assert one.skipped == 1


def test_beam_is_read_with_nested_sources(tmp_path: Path) -> None:
    folder = tmp_path / "1"
    (folder / "probing_questions").mkdir(parents=True)
    turns = [
        [
            {
                "role": "user",
                "id": 0,
                "time_anchor": "March-15-2024",
                "content": "Plan my week? ->-> 1,1",
            },
            {"role": "assistant", "id": 1, "content": "Sure."},
        ],
        [{"role": "user", "id": 2, "content": "Thanks"}],
    ]
    (folder / "chat.json").write_text(json.dumps([{"batch_number": 1, "turns": turns}]), "utf-8")
    probing = {
        "abstention": [{"question": "Unknown?"}],
        "contradiction_resolution": [
            {
                "question": "Which?",
                "source_chat_ids": {"first_statement": [0], "second_statement": [2]},
            }
        ],
        "information_extraction": [{"question": "What?", "source_chat_ids": [1]}],
    }
    (folder / "probing_questions" / "probing_questions.json").write_text(
        json.dumps(probing), "utf-8"
    )
    (one,) = load_beam(tmp_path)
    assert [turn.text for turn in one.turns] == ["Plan my week?", "Sure.", "Thanks"]
    assert one.turns[0].at.date().isoformat() == "2024-03-15"
    assert [(q.category, set(q.evidence)) for q in one.questions] == [
        ("contradiction-resolution", {1, 3}),
        ("information-extraction", {2}),
    ]
    assert one.skipped == 1
    with pytest.raises(ValueError, match=r"chat\.json"):
        load_beam(folder)
