"""The embedding routes of the protocols: vectors of the hashed embedder, scaled so that clients
have to normalise them."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from typing import Any

import numpy as np

from memservice.testing.model_server import Handler, Request
from memservice_hashed.embedder import HashedEmbedder

_HASHED = HashedEmbedder()


def vectors(texts: Sequence[str], dimension: int | None = None) -> list[list[float]]:
    return [[float(number) * 3 for number in vector[:dimension]] for vector in _HASHED.embed(texts)]


def openai_vectors(handler: Handler, request: Request) -> None:
    """In reverse order, as the protocol allows: the index assigns them."""
    body = request.body
    rows = []
    for index, vector in enumerate(vectors(body["input"], body.get("dimensions"))):
        packed = b64encode(np.array(vector, "<f4").tobytes()).decode()
        rows.append(
            {
                "object": "embedding",
                "index": index,
                "embedding": packed if body.get("encoding_format") == "base64" else vector,
            }
        )
    answer: dict[str, Any] = {
        "object": "list",
        "data": rows[::-1],
        "usage": {"prompt_tokens": 5, "total_tokens": 5},
    }
    handler.json(answer)


def gemini_vectors(handler: Handler, request: Request) -> None:
    requests = request.body["requests"]
    texts = [one["content"]["parts"][0]["text"] for one in requests]
    embeddings = vectors(texts, requests[0].get("outputDimensionality"))
    handler.json({"embeddings": [{"values": vector} for vector in embeddings]})


def openai_texts(request: Request) -> list[str]:
    texts: list[str] = request.body["input"]
    return texts
