"""Embedders that are wrong in one way each, and the test of the kit that has to say so."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pytest

from memservice.spi.embedding import Embedder, Purpose
from memservice.testing.embedding import EmbedderContract
from memservice_hashed.embedder import HashedEmbedder

if TYPE_CHECKING:
    from memservice.spi.vectors import Vector


class Broken(EmbedderContract):
    """The kit on a broken embedder. `caught_by` names tests that have to fail."""

    broken: ClassVar[type[HashedEmbedder]]
    caught_by: ClassVar[tuple[str, ...]]

    @pytest.fixture
    def embedder(self) -> Embedder:
        return self.broken()


class CorrectEmbedder(HashedEmbedder):
    """The hashed embedder, with lists of rows that may be tampered with."""

    def vectors(self, texts: Sequence[str], purpose: Purpose) -> list[Vector]:
        return [np.array(row) for row in super().embed(texts, purpose)]

    def embed(self, texts: Sequence[str], purpose: Purpose = "document") -> list[Vector]:
        return self.vectors(texts, purpose)


class NotNormalised(CorrectEmbedder):
    def vectors(self, texts: Sequence[str], purpose: Purpose) -> list[Vector]:
        return [
            vector * np.float32(1 + n) for n, vector in enumerate(super().vectors(texts, purpose))
        ]


class BlankIsSomething(CorrectEmbedder):
    def vectors(self, texts: Sequence[str], purpose: Purpose) -> list[Vector]:
        return super().vectors([text if text.strip() else "blank" for text in texts], purpose)


class SkipsBlank(CorrectEmbedder):
    def vectors(self, texts: Sequence[str], purpose: Purpose) -> list[Vector]:
        return super().vectors([text for text in texts if text.strip()], purpose)


class SortsItsBatch(CorrectEmbedder):
    def vectors(self, texts: Sequence[str], purpose: Purpose) -> list[Vector]:
        return super().vectors(sorted(texts, key=len), purpose)


class ForgetsItself(CorrectEmbedder):
    """Other vectors at each call."""

    calls = 0

    def vectors(self, texts: Sequence[str], purpose: Purpose) -> list[Vector]:
        self.calls += 1
        return [np.roll(vector, self.calls) for vector in super().vectors(texts, purpose)]


class AsksInAnotherSpace(CorrectEmbedder):
    def vectors(self, texts: Sequence[str], purpose: Purpose) -> list[Vector]:
        embeddings = super().vectors(texts, purpose)
        return [np.roll(vector, 7) for vector in embeddings] if purpose == "query" else embeddings


class WorksInOneBuffer(CorrectEmbedder):
    def vectors(self, texts: Sequence[str], purpose: Purpose) -> list[Vector]:
        self.buffer = super().vectors(texts, purpose)
        time.sleep(0.002)
        return self.buffer


class TakesNeighboursForDuplicates(CorrectEmbedder):
    duplicate_distance = 0.999


class TestNotNormalised(Broken):
    broken, caught_by = NotNormalised, ("test_one_vector_per_text[document]",)


class TestBlankIsSomething(Broken):
    broken, caught_by = BlankIsSomething, ("test_a_text_without_content_is_all_zeros[query]",)


class TestSkipsBlank(Broken):
    broken, caught_by = SkipsBlank, ("test_vectors_are_in_the_order_of_the_texts",)


class TestSortsItsBatch(Broken):
    broken, caught_by = SortsItsBatch, ("test_vectors_are_in_the_order_of_the_texts",)


class TestForgetsItself(Broken):
    broken, caught_by = ForgetsItself, ("test_the_same_text_has_the_same_vector",)


class TestAsksInAnotherSpace(Broken):
    broken, caught_by = AsksInAnotherSpace, ("test_a_query_is_nearest_to_its_own_text",)


class TestWorksInOneBuffer(Broken):
    broken, caught_by = WorksInOneBuffer, ("test_threads_do_not_disturb_each_other",)


class TestTakesNeighboursForDuplicates(Broken):
    broken, caught_by = TakesNeighboursForDuplicates, ("test_a_restatement_is_a_duplicate",)
