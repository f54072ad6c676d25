"""The contract of an embedder: subclass `EmbedderContract` and give it the fixture `embedder`."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np
import pytest

from memservice.spi.capabilities import Capability
from memservice.spi.embedding import Embedder, Purpose

if TYPE_CHECKING:
    from memservice.spi.vectors import Vector

TEXTS = (
    "Alice adopted a tortoise named Balthazar last spring.",
    "The quarterly report is due on Friday at noon.",
    "Bob plays the cello in a small orchestra.",
    "Meine Schwester wohnt seit 2019 in Tromsø.",
    "我妹妹住在特罗姆瑟，她是护士。",
    "妹はトロムソに住んでいます。",
    "Моя сестра работает в больнице.",
    "a",
    "42",
    "👩‍👩‍👧 family picnic 🧺",
    "line one\nline two\twith a tab",
    "it's 100%_\\ 'quoted' \"twice\" \u202eabc\u202c\x01",
    "SELECT * FROM memories; -- not a query",
)
"""Texts with content in several scripts. Neighbours have different subjects."""

BLANK = ("", " ", "\n\t \r\n", "\u3000")

PARAPHRASES = (
    (
        "She is employed at a hospital as a nurse.",
        "Her job is caring for patients in a clinic.",
        "The train to Bergen leaves at nine.",
    ),
    (
        "He cannot eat peanuts because of an allergy.",
        "Groundnuts make him ill, so he avoids them.",
        "She painted the fence green.",
    ),
    (
        "They moved into a new flat in April.",
        "Their relocation to another apartment was in spring.",
        "The recipe needs two eggs.",
    ),
)
"""A text, a paraphrase of it, and an unrelated text."""

TOLERANCE = 1e-3
"""How much vectors of one text may differ between calls: remote models are not exact to the last
bit."""


def _cosine(a: Vector, b: Vector) -> float:
    return float(np.dot(a.astype(np.float64), b.astype(np.float64)))


class EmbedderContract:
    """The requirements of an embedder."""

    @pytest.fixture
    def embedder(self) -> Embedder:
        raise NotImplementedError(
            "give your subclass of EmbedderContract a fixture `embedder` that returns the "
            "opened embedder"
        )

    def _require(self, embedder: Embedder, capability: Capability, why: str) -> None:
        if capability not in embedder.capabilities:
            pytest.skip(
                f"the embedder {embedder.id!r} lacks the capability {capability.name}: {why}"
            )

    def test_it_declares_its_id_dimension_and_capabilities(self, embedder: Embedder) -> None:
        assert 0 < len(embedder.id) <= 200
        assert embedder.id == embedder.id.strip()
        assert embedder.dimension > 0
        assert all(isinstance(capability, Capability) for capability in embedder.capabilities)
        assert embedder.duplicate_distance is None or 0 <= embedder.duplicate_distance < 1

    @pytest.mark.parametrize("purpose", ["document", "query"])
    def test_one_vector_per_text(self, embedder: Embedder, purpose: Purpose) -> None:
        """float32, of the declared dimension, finite, and of length 1."""
        vectors = embedder.embed(TEXTS, purpose)
        assert len(vectors) == len(TEXTS)
        for text, vector in zip(TEXTS, vectors, strict=True):
            assert vector.dtype == np.float32
            assert vector.shape == (embedder.dimension,)
            assert np.isfinite(vector).all()
            assert float(np.linalg.norm(vector)) == pytest.approx(1, abs=TOLERANCE), text

    def test_no_texts_no_vectors(self, embedder: Embedder) -> None:
        assert len(embedder.embed([])) == 0

    @pytest.mark.parametrize("purpose", ["document", "query"])
    def test_a_text_without_content_is_all_zeros(
        self, embedder: Embedder, purpose: Purpose
    ) -> None:
        for vector in embedder.embed(BLANK, purpose):
            assert vector.shape == (embedder.dimension,)
            assert not vector.any()

    def test_vectors_are_in_the_order_of_the_texts(self, embedder: Embedder) -> None:
        """A batch gives the same vectors as its texts one by one, at every position, repeated or
        between blank texts."""
        alone = {text: embedder.embed([text])[0] for text in TEXTS}
        mixed = [*TEXTS[::-1], "", TEXTS[0], TEXTS[0], " ", *TEXTS]
        for text, vector in zip(mixed, embedder.embed(mixed), strict=True):
            if text.strip():
                assert np.allclose(vector, alone[text], atol=TOLERANCE), text
            else:
                assert not vector.any()

    def test_the_same_text_has_the_same_vector(self, embedder: Embedder) -> None:
        first, second = embedder.embed(TEXTS), embedder.embed(TEXTS)
        for text, a, b in zip(TEXTS, first, second, strict=True):
            assert np.allclose(a, b, atol=TOLERANCE), text

    def test_different_texts_have_different_vectors(self, embedder: Embedder) -> None:
        vectors = embedder.embed(TEXTS)
        for i, a in enumerate(vectors):
            for b in vectors[i + 1 :]:
                assert _cosine(a, b) < 0.99

    def test_a_query_is_nearest_to_its_own_text(self, embedder: Embedder) -> None:
        documents = np.array(embedder.embed(TEXTS, "document"))
        for index, query in enumerate(embedder.embed(TEXTS, "query")):
            assert int(np.argmax(documents @ query)) == index, TEXTS[index]

    def test_a_text_of_any_length_has_a_vector(self, embedder: Embedder) -> None:
        vectors = embedder.embed(["word " * 20_000, "x" * 50_000, "字" * 20_000])
        assert [float(np.linalg.norm(vector)) for vector in vectors] == pytest.approx(
            [1, 1, 1], abs=TOLERANCE
        )

    def test_the_callers_list_is_not_changed(self, embedder: Embedder) -> None:
        texts = [TEXTS[0], "", TEXTS[1]]
        embedder.embed(texts)
        assert texts == [TEXTS[0], "", TEXTS[1]]

    def test_threads_do_not_disturb_each_other(self, embedder: Embedder) -> None:
        expected = embedder.embed(TEXTS)
        start = threading.Barrier(4)

        def embed(order: Sequence[int]) -> dict[int, Vector]:
            start.wait(30)
            return {n: embedder.embed([TEXTS[n]])[0] for n in order}

        orders = [list(range(len(TEXTS)))[k:] + list(range(len(TEXTS)))[:k] for k in (0, 3, 6, 9)]
        with ThreadPoolExecutor(4) as pool:
            for vectors in pool.map(embed, orders):
                for n, vector in vectors.items():
                    assert np.allclose(vector, expected[n], atol=TOLERANCE), TEXTS[n]

    def test_a_restatement_is_a_duplicate(self, embedder: Embedder) -> None:
        """With a `duplicate_distance`, a text is a duplicate of itself and of no other text."""
        if embedder.duplicate_distance is None:
            pytest.skip(
                f"the embedder {embedder.id!r} declares that distance does not show "
                "duplicates (duplicate_distance is None)"
            )
        vectors = embedder.embed(TEXTS)
        for index, a in enumerate(vectors):
            for other, b in enumerate(vectors):
                assert (1 - _cosine(a, b) <= embedder.duplicate_distance + TOLERANCE) == (
                    index == other
                )

    @pytest.mark.parametrize(("text", "same", "different"), PARAPHRASES)
    def test_paraphrases_are_near_each_other(
        self, embedder: Embedder, text: str, same: str, different: str
    ) -> None:
        self._require(embedder, Capability.SEMANTIC, "it finds restatements only")
        one, two, other = embedder.embed([text, same, different])
        assert _cosine(one, two) > _cosine(one, other)

    def test_it_is_fast_enough_for_a_write(self, embedder: Embedder) -> None:
        """The fastest of thirty takes less than 5 milliseconds, because the machine may be busy.
        The aim is well below one."""
        self._require(embedder, Capability.INLINE, "it is never called inside a write")
        embedder.embed(["warm up"])
        spent = []
        for n in range(30):
            began = time.perf_counter()
            embedder.embed([f"Sentence number {n} says that the meeting moved to room {n * 7}."])
            spent.append(time.perf_counter() - began)
        assert min(spent) < 0.005
