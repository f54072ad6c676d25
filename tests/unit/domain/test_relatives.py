"""Terms that inflected and derived words share."""

from __future__ import annotations

import pytest

from memservice.domain.ranking import TextHit, TextMatches, bm25, ranked
from memservice.domain.text.analysis import analyse
from memservice.domain.text.relatives import MAX_SHORT_WORDS, index_terms, query_words


def related(text: str) -> set[str]:
    return set(index_terms(text, beginnings=True).related)


def beginnings(text: str) -> set[str]:
    return {term for word in query_words(text) for term, _ in word.beginnings}


@pytest.mark.parametrize(
    ("message", "query"),
    [
        ("Wir haben zwei Katzen.", "Wie heißt die Katze?"),
        ("Compramos dos casas.", "¿Dónde está la casa?"),
        ("Mes genoux me font mal.", "Quel genou ?"),
        ("Мы взяли котят и собаку.", "Кто видел собаки?"),
        ("هي المترجمة", "المترجمون"),
    ],
)
def test_forms_of_a_word_share_a_stem(message: str, query: str) -> None:
    stems = {stem for word in query_words(query) for stem in word.stems}
    assert stems & related(message)


@pytest.mark.parametrize(
    ("message", "query"),
    [
        ("I have been allergic since then.", "allergy"),
        ("Ich habe ein Fahrrad gekauft.", "Wann war der Kauf?"),
        ("La abuela duerme mal.", "dormir"),
        ("سننتقل إلى مدينة طنجة", "الانتقال"),
    ],
)
def test_derived_words_share_a_beginning(message: str, query: str) -> None:
    assert beginnings(query) & related(message)


@pytest.mark.parametrize(
    ("query", "stem"), [("È partita ieri", "·part"), ("é gatinhos", "·gatinh")], ids=["it", "pt"]
)
def test_the_accent_of_a_function_word_tells_the_language(query: str, stem: str) -> None:
    """Without its accent, the word is Italian and Portuguese."""
    stems = {stem for word in query_words(query) for stem in word.stems}
    assert stem in stems
    assert not {"·partit", "·gatinhos"} & stems


def test_the_terms_of_the_analysis_stay() -> None:
    text = "Wir haben zwei Katzen, 2 Hunde und 猫."
    assert index_terms(text, beginnings=True).terms == analyse(text)


def test_an_english_text_has_no_stems_beside_its_terms() -> None:
    assert index_terms("We have adopted two kittens from the shelter", False).related == []


def test_a_long_text_has_no_short_beginnings() -> None:
    words = [f"{letter}{other}rinding" for letter in "abcdefgh" for other in "aeiouxyz"]
    assert len(words) > MAX_SHORT_WORDS
    assert {len(term) for term in related(" ".join(words))} == {6}
    assert {len(term) for term in related("grinding")} == {4, 6}


def test_a_query_leaves_out_stop_words_of_its_language_unless_it_has_no_others() -> None:
    assert [word.term for word in query_words("Wie heißt die Katze?")] == ["katz"]
    assert [word.term for word in query_words("der die das")] == ["der", "die", "das"]
    assert [word.term for word in query_words("猫が好きですか")][:2] == ["猫", "猫が"]


def test_a_word_counts_by_its_best_term_and_the_exact_form_is_first() -> None:
    hits = [
        TextHit(1, {"·katz": 1}, 5),
        TextHit(2, {"katz": 1, "·katz": 1}, 5),
        TextHit(3, {"°kat": 1}, 5),
    ]
    matches = TextMatches(100, 5.0, {"katz": 2, "·katz": 2, "°kat": 2}, hits)
    scores = bm25(matches, [{"katz": 1.0, "·katz": 0.9, "°kat": 0.2}])
    assert ranked(scores) == [2, 1, 3]
    assert scores[1] == pytest.approx(0.9 * scores[2])
