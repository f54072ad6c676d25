"""The embedders that ask over HTTP keep the contract, over a real connection. What they understand
is the server's business: the one here hashes, so it is not asked for paraphrases, nor which
restatements it takes for duplicates."""

from __future__ import annotations

import pytest

from memservice.spi.embedding import Embedder
from memservice.testing.embedding import EmbedderContract
from memservice.testing.model_server import Server
from support.models.fixtures import OpenEmbedder
from support.models.vectors import gemini_vectors, openai_vectors


class _Http(EmbedderContract):
    @pytest.mark.skip(
        reason=(
            "the scripted server hashes texts: paraphrases are tested with a model, in "
            "tests/unit/plugins/test_minilm.py"
        )
    )
    def test_paraphrases_are_near_each_other(self) -> None:  # type: ignore[override]
        """Not of a server without a model."""


class TestOpenAi(_Http):
    @pytest.fixture
    def embedder(self, server: Server, open_embedder: OpenEmbedder) -> Embedder:
        server.then(openai_vectors)
        return open_embedder("openai", "/v1", model="local", encoding_format_mode="base64")


class TestGemini(_Http):
    @pytest.fixture
    def embedder(self, server: Server, open_embedder: OpenEmbedder) -> Embedder:
        server.then(gemini_vectors)
        return open_embedder("gemini", dimensions_mode="never")
