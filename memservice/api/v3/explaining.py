"""Responses of searches, on request with how the results were found."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from flask import Response

from memservice.api.answers import json_answer
from memservice.api.encoding import encoder
from memservice.api.routing import Call
from memservice.api.v3.schemas.conclusions import ListedConclusion
from memservice.api.v3.schemas.explanations import Explanation, MessageExplanation
from memservice.api.v3.schemas.messages import Message
from memservice.services.retrieval import search
from memservice.services.retrieval.explain import Explained
from memservice.services.retrieval.search import SearchOptions

EXPLAIN = "X-Memservice-Explain"
HEADERS: Mapping[str, str] = {
    EXPLAIN: (
        "With `explain`: JSON of the whole search. `lists` were fused with `fusion_k`; `candidates`"
        " counts the rows in them, and `removed` those that each filter and the limit excluded. "
        "Both are null for a key that does not open the whole workspace."
    )
}
"""The header that such a response can have, with its description."""

Path = Mapping[str, str]
Encode = Callable[[Any, Path], Any]

encode_message = encoder(Message)
encode_conclusion = encoder(ListedConclusion)
encode_explanation = encoder(Explanation)
_encode_message_explanation = encoder(MessageExplanation)


def respond_search(
    call: Call, workspace_id: str, session_id: str | None = None, peer_id: str | None = None
) -> Response:
    """The response to a search for messages."""
    body, path = call.body, {"workspace_id": workspace_id}
    options = SearchOptions(body["query"], body["limit"], body["filters"], body.get("scope"))
    if not body["explain"]:
        messages = search.search(
            call.rt, call.principal, workspace_id, options, session_id, peer_id
        )
        return json_answer([encode_message(row, path) for row in messages])
    result = search.explain(call.rt, call.principal, workspace_id, options, session_id, peer_id)
    return respond_explained(result, result.rows, encode_message, _encode_message_explanation, path)


def respond_explained(
    result: Explained[Any],
    rows: Sequence[Any],
    encode: Encode,
    encode_parts: Encode,
    path: Path,
) -> Response:
    """The rows, each with its explanation. `rows`: those of the result, in the form of
    `encode`."""
    items = [
        {**encode(row, path), "explanation": encode_parts(parts, path)}
        for row, parts in zip(rows, result.parts, strict=True)
    ]
    response = json_answer(items)
    counts = result.counts
    whole = {
        "lists": list(result.lists),
        "fusion_k": result.fusion_k,
        "candidates": None if counts is None else counts.candidates,
        "removed": None if counts is None else dict(counts.removed),
    }
    response.headers[EXPLAIN] = json.dumps(whole, separators=(",", ":"))
    return response
