"""The embeddings route of OpenAI, which many servers have."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from memservice.spi.embedding import Purpose
from memservice.spi.llm import ModelFailure
from memservice.spi.providers import Context
from memservice_http.client import Endpoint
from memservice_http.embedder import HttpEmbedder
from memservice_openai.options import is_official

if TYPE_CHECKING:
    from numpy.typing import NDArray

PATH = "/embeddings"
DEFAULT_MODEL = "text-embedding-3-small"
RESIZABLE = "text-embedding-3"
"""Models whose name holds this can be asked for a dimension; of others that is not known, and
asking is an error to most servers."""
BATCH = 128


class OpenAiEmbedder(HttpEmbedder):
    def __init__(self, endpoint: Endpoint, settings: Mapping[str, Any], context: Context) -> None:
        model = settings["model"] or DEFAULT_MODEL
        mode = settings["dimensions_mode"]
        requested_dimension = (
            settings["vector_dimensions"]
            if mode == "always" or (mode == "auto" and RESIZABLE in model)
            else None
        )
        super().__init__(endpoint, settings, context, model, requested_dimension, BATCH)
        encoding = settings["encoding_format_mode"]
        # Vectors as text are four times as long; but only OpenAI is sure to know the other form.
        best = "base64" if is_official(endpoint.url("").host) else None
        self._encoding = best if encoding == "auto" else encoding

    def ask(
        self, texts: Sequence[str], purpose: Purpose, timeout: float | None
    ) -> tuple[list[NDArray[Any]], int]:
        body: dict[str, Any] = {"model": self.model, "input": list(texts)}
        if self.requested_dimension is not None:
            body["dimensions"] = self.requested_dimension
        if self._encoding is not None:
            body["encoding_format"] = self._encoding
        answer = self.endpoint.post(PATH, body, timeout=timeout)
        rows = answer["data"]
        indexes = [row.get("index", index) for index, row in enumerate(rows)]
        if sorted(indexes) != list(range(len(texts))):
            raise ModelFailure(
                (
                    f"{self.endpoint.provider} answered with {len(rows)} vectors for "
                    f"{len(texts)} texts"
                ),
                retryable=True,
            )
        vectors = {
            index_: _vector(row["embedding"]) for index_, row in zip(indexes, rows, strict=True)
        }
        usage = answer.get("usage") or {}
        return [vectors[index] for index in range(len(texts))], int(
            usage.get("prompt_tokens") or usage.get("total_tokens") or 0
        )


def _vector(encoded: Any) -> NDArray[Any]:
    if isinstance(encoded, str):
        return np.frombuffer(b64decode(encoded, validate=True), "<f4")
    return np.asarray(encoded, np.float64)
