"""Looking many texts up at once finds what comparing with each of them finds."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memservice.domain.text.shingles import ShingleIndex, shingles_overlap
from support.examples import examples

words = st.sampled_from(
    ["tea", "boat", "Oslo", "the", "I", "like", "17", "寿司", "が", "好きです", "Ärger", "a"]
)
texts = st.lists(words, max_size=24).map(" ".join)


@pytest.mark.slow
@settings(max_examples=examples(200), deadline=None)
@given(
    stored_texts=st.lists(texts, max_size=8),
    text=texts,
    share=st.sampled_from([0.1, 0.5, 0.75, 0.9, 1.0]),
)
def test_the_index_agrees_with_the_overlap_of_each_text(
    stored_texts: list[str], text: str, share: float
) -> None:
    expected = [
        index for index, other in enumerate(stored_texts) if shingles_overlap(text, other) >= share
    ]
    assert ShingleIndex(stored_texts).repeating(text, share) == expected


def test_similar_texts_are_found_even_if_the_rarest_words_differ() -> None:
    text = (
        "we went up the hill and saw the old mill and then we came all the way down again in "
        "the rain"
    )
    other = text.replace("rain", "snow")
    assert ShingleIndex(["nothing of it", text]).repeating(other, 0.9) == [1]
    assert ShingleIndex([text]).repeating(other, 1.0) == []
    assert ShingleIndex([text]).repeating("", 0.9) == []
