"""`batchEmbedContents`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import numpy as np

from memservice.spi.embedding import Purpose
from memservice.spi.providers import Context
from memservice_http.client import Endpoint
from memservice_http.embedder import HttpEmbedder

if TYPE_CHECKING:
    from numpy.typing import NDArray

DEFAULT_MODEL = "gemini-embedding-001"
WITH_TASK = ("gemini-embedding-001", "text-embedding-004", "embedding-001")
"""Models that are told what a text is for."""
BATCH = 100
"""The most that the API takes in one call."""
TASKS: dict[Purpose, str] = {"document": "RETRIEVAL_DOCUMENT", "query": "RETRIEVAL_QUERY"}


class GeminiEmbedder(HttpEmbedder):
    def __init__(self, endpoint: Endpoint, settings: Mapping[str, Any], context: Context) -> None:
        model = (settings["model"] or DEFAULT_MODEL).removeprefix("models/")
        mode = settings["dimensions_mode"]
        requested_dimension = (
            settings["vector_dimensions"]
            if mode == "always" or (mode == "auto" and model.startswith("gemini-embedding"))
            else None
        )
        super().__init__(endpoint, settings, context, model, requested_dimension, BATCH)
        self._batch = min(self._batch, BATCH)

    def ask(
        self, texts: Sequence[str], purpose: Purpose, timeout: float | None
    ) -> tuple[list[NDArray[Any]], int]:
        common: dict[str, Any] = {"model": f"models/{self.model}"}
        if self.model in WITH_TASK:
            common["taskType"] = TASKS[purpose]
        if self.requested_dimension is not None:
            common["outputDimensionality"] = self.requested_dimension
        requests = [{**common, "content": {"parts": [{"text": text}]}} for text in texts]
        answer = self.endpoint.post(
            f"/models/{quote(self.model, safe='')}:batchEmbedContents",
            {"requests": requests},
            timeout=timeout,
        )
        return [np.asarray(row["values"], np.float64) for row in answer["embeddings"]], 0
