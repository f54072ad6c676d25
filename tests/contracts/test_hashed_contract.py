"""The hashed embedder keeps the contract of an embedder."""

from __future__ import annotations

import pytest

from memservice.spi.embedding import Embedder
from memservice.testing.embedding import EmbedderContract
from memservice_hashed.embedder import HashedEmbedder


class TestHashedEmbedder(EmbedderContract):
    @pytest.fixture
    def embedder(self) -> Embedder:
        return HashedEmbedder()
