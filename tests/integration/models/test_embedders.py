"""Embedders: their requests, how they read answers, and what they report."""

from __future__ import annotations

import numpy as np
import pytest

from memservice.domain.errors import ConfigurationError
from memservice.plugins import Plugins
from memservice.spi.capabilities import Capability
from memservice.spi.llm import ModelCall, ModelFailure
from memservice.spi.providers import Context
from memservice.testing.model_server import KEY, Answer, Handler, Request, Server
from support.models.fixtures import OpenEmbedder
from support.models.vectors import gemini_vectors, openai_texts, openai_vectors, vectors


def fails(status: int, **headers: str) -> Answer:
    def answer(handler: Handler, request: Request) -> None:
        handler.json(
            {"error": {"message": f"no: {KEY}"}},
            status,
            {name.replace("_", "-"): value for name, value in headers.items()},
        )

    return answer


def test_no_request_is_sent_before_a_vector_is_needed(
    server: Server, open_embedder: OpenEmbedder
) -> None:
    server.then(fails(500))
    embedder = open_embedder("openai", "/v1", model="nomic-embed-text")
    assert embedder.id == "openai:nomic-embed-text"
    assert embedder.capabilities == {Capability.SEMANTIC, Capability.REMOTE, Capability.TIMED}
    assert embedder.duplicate_distance == 0.05
    assert server.requests == []


def test_the_dimension_is_that_of_the_endpoint(server: Server, open_embedder: OpenEmbedder) -> None:
    server.then(openai_vectors)
    embedder = open_embedder("openai", "/v1", model="nomic-embed-text")
    assert embedder.dimension == 384
    assert embedder.embed([""])[0].shape == (384,)
    assert len(server.requests) == 1, "asked once"
    assert "dimensions" not in server.requests[0].body


@pytest.mark.parametrize(
    ("model", "mode", "is_requested"),
    [
        (None, "auto", True),
        ("text-embedding-3-large", "auto", True),
        ("text-embedding-3-large", "never", False),
        ("mxbai", "auto", False),
        ("mxbai", "always", True),
    ],
)
def test_a_dimension_is_requested_from_models_that_support_it(
    server: Server, open_embedder: OpenEmbedder, model: str | None, mode: str, is_requested: bool
) -> None:
    server.then(openai_vectors)
    embedder = open_embedder(
        "openai", "/v1", model=model, dimensions_mode=mode, vector_dimensions=256
    )
    assert embedder.dimension == (256 if is_requested else 384)
    assert (
        embedder.id == f"openai:{model or 'text-embedding-3-small'}{'@256' if is_requested else ''}"
    )
    assert server.requests[0].body.get("dimensions") == (256 if is_requested else None)


def test_an_unexpected_dimension_is_an_error_that_says_what_to_do(
    server: Server, open_embedder: OpenEmbedder
) -> None:
    server.then(openai_vectors)
    with pytest.raises(
        ModelFailure, match=r"dimension 384 instead of 512.*DIMENSIONS_MODE=never"
    ) as caught:
        open_embedder(
            "openai", "/v1", model="m", dimensions_mode="always", vector_dimensions=512
        ).embed(["a"])
    assert not caught.value.retryable


def test_another_model_under_the_same_name_is_detected(
    server: Server, open_embedder: OpenEmbedder
) -> None:
    def smaller(handler: Handler, request: Request) -> None:
        handler.json({"data": [{"index": 0, "embedding": [1.0, 2.0]}]})

    server.then(openai_vectors, smaller)
    embedder = open_embedder("openai", "/v1", model="m")
    embedder.embed(["a"])
    with pytest.raises(ModelFailure, match="dimension 2, and before of dimension 384"):
        embedder.embed(["b"])


@pytest.mark.parametrize(
    ("mode", "sent"), [("auto", None), ("float", "float"), ("base64", "base64")]
)
def test_vectors_are_sent_in_the_configured_encoding(
    server: Server, open_embedder: OpenEmbedder, mode: str, sent: str | None
) -> None:
    server.then(openai_vectors)
    embedder = open_embedder("openai", "/v1", model="m", encoding_format_mode=mode)
    received = embedder.embed(["tea and cake", "a boat"])
    expected = [np.array(v) / np.linalg.norm(v) for v in vectors(["tea and cake", "a boat"])]
    assert np.allclose(received, expected, atol=1e-6)
    assert server.requests[0].body.get("encoding_format") == sent


def test_texts_are_sent_in_batches_in_order(
    server: Server, open_embedder: OpenEmbedder, calls: list[ModelCall]
) -> None:
    server.then(openai_vectors)
    embedder = open_embedder("openai", "/v1", model="m", max_batch_size=3)
    texts = [f"text number {n}" for n in range(8)]
    alone = [embedder.embed([text])[0] for text in texts]
    server.requests.clear()
    calls.clear()
    assert np.allclose(embedder.embed([*texts[:4], " ", *texts[4:]])[:4], alone[:4])
    assert [len(openai_texts(request)) for request in server.requests] == [3, 3, 2]
    assert [(call.input_count, call.input_tokens) for call in calls] == [(3, 5), (3, 5), (2, 5)]


def test_the_tokens_of_a_call_are_limited(server: Server, open_embedder: OpenEmbedder) -> None:
    server.then(openai_vectors)
    embedder = open_embedder("openai", "/v1", model="m", max_tokens_per_request=10)
    embedder.embed(["one two three four five six"] * 3)
    assert [len(openai_texts(request)) for request in server.requests] == [1, 1, 1]


def test_long_texts_are_cut(server: Server, open_embedder: OpenEmbedder) -> None:
    from memservice.domain import tokens

    server.then(openai_vectors)
    open_embedder("openai", "/v1", model="m", max_input_tokens=20).embed(
        ["word " * 500, "short", "字" * 300]
    )
    cut, short, chinese = openai_texts(server.requests[0])
    assert short == "short"
    for text in (cut, chinese):
        assert 18 <= tokens.count(text) <= 20


def test_a_server_that_takes_fewer_texts_gets_fewer(
    server: Server, open_embedder: OpenEmbedder
) -> None:
    def at_most_two(handler: Handler, request: Request) -> None:
        if len(request.body["input"]) > 2:
            fails(413)(handler, request)
        else:
            openai_vectors(handler, request)

    server.then(at_most_two)
    embedded = open_embedder("openai", "/v1", model="m").embed(["a", "b", "c", "d", "e"])
    assert np.allclose(
        embedded,
        [np.array(v) / np.linalg.norm(v) for v in vectors(["a", "b", "c", "d", "e"])],
        atol=1e-6,
    )


def test_documents_are_retried_and_each_try_is_reported(
    server: Server, open_embedder: OpenEmbedder, calls: list[ModelCall]
) -> None:
    server.then(fails(503), fails(429, Retry_After="0.1"), openai_vectors)
    open_embedder("openai", "/v1", model="m").embed(["a"])
    assert [(call.outcome, call.attempt, call.attempts, call.error_class) for call in calls] == [
        ("error", 1, 3, "ModelFailure 503"),
        ("error", 2, 3, "ModelFailure 429"),
        ("success", 3, 3, None),
    ]
    assert all(
        call.embedding
        and call.transport == "openai"
        and call.model == "m"
        and call.purpose == "document"
        for call in calls
    )


def test_a_long_requested_pause_is_not_waited_for(
    server: Server, open_embedder: OpenEmbedder, calls: list[ModelCall]
) -> None:
    server.then(fails(429, Retry_After="60"))
    with pytest.raises(ModelFailure) as caught:
        open_embedder("openai", "/v1", model="m").embed(["a"])
    assert (caught.value.retryable, caught.value.retry_after, len(calls)) == (True, 60.0, 1)


@pytest.mark.parametrize("protocol", ["openai", "gemini"])
def test_a_query_is_tried_once_within_its_timeout(
    server: Server, open_embedder: OpenEmbedder, protocol: str
) -> None:
    server.then(fails(503))
    with pytest.raises(ModelFailure):
        open_embedder(protocol, "/v1", model="m").embed(["a"], "query")
    assert len(server.requests) == 1
    server.then(lambda handler, request: handler.wait_to_be_left())
    with pytest.raises(ModelFailure, match=r"longer than 0\.3 s"):
        open_embedder(protocol, "/v1", model="m", query_seconds=0.3).embed(["a"], "query")
    assert server.left.wait(20)


@pytest.mark.parametrize(
    "answer",
    [
        {"data": [{"index": 0, "embedding": [1.0]}]},
        {"data": [{"index": 0, "embedding": [1.0]}, {"index": 0, "embedding": [1.0]}]},
        {"data": [{"index": 0, "embedding": [1.0, 2.0]}, {"index": 1, "embedding": [1.0]}]},
        {"data": [{"index": 0, "embedding": "!!"}, {"index": 1, "embedding": "!!"}]},
        {"data": [{"index": 0, "embedding": [1.0]}, {"index": 1, "embedding": [None]}]},
        {"data": [{"index": 0, "embedding": []}, {"index": 1, "embedding": []}]},
        {"embeddings": []},
        [],
        None,
    ],
    ids=[
        "too few",
        "twice the same",
        "uneven",
        "no base64",
        "no number",
        "empty",
        "another route",
        "a list",
        "null",
    ],
)
def test_an_unusable_answer_is_a_failure(
    server: Server, open_embedder: OpenEmbedder, answer: object
) -> None:
    server.then(lambda handler, request: handler.json(answer))
    with pytest.raises(ModelFailure):
        open_embedder("openai", "/v1", model="m").embed(["a", "b"], "query")


def test_the_key_goes_to_the_endpoint_and_nowhere_else(
    server: Server,
    open_embedder: OpenEmbedder,
    calls: list[ModelCall],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("DEBUG")
    server.then(fails(401))
    embedder = open_embedder("openai", "/v1", model="m", extra_query={"token": "hidden-in-the-url"})
    with pytest.raises(ModelFailure, match="is the key right") as caught:
        embedder.embed(["a"])
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert "hidden-in-the-url" in server.requests[0].path
    for text in (str(caught.value), repr(calls), embedder.id, caplog.text):
        assert KEY not in text
        assert "hidden-in-the-url" not in text


def test_gemini_gets_the_purpose_of_a_text(server: Server, open_embedder: OpenEmbedder) -> None:
    server.then(gemini_vectors)
    embedder = open_embedder("gemini", vector_dimensions=128)
    assert embedder.id == "gemini:gemini-embedding-001@128"
    (vector,) = embedder.embed(["tea"])
    embedder.embed(["tea?"], "query")
    assert float(np.linalg.norm(vector)) == pytest.approx(1), (
        "a shortened vector is not of length 1 as it comes"
    )
    first, second = server.requests
    assert first.path == "/v1beta/models/gemini-embedding-001:batchEmbedContents"
    assert first.headers["x-goog-api-key"] == KEY
    kinds = [request.body["requests"][0]["taskType"] for request in (first, second)]
    assert kinds == ["RETRIEVAL_DOCUMENT", "RETRIEVAL_QUERY"]
    assert first.body["requests"][0]["outputDimensionality"] == 128


def test_gemini_gets_a_hundred_texts_per_call(server: Server, open_embedder: OpenEmbedder) -> None:
    server.then(gemini_vectors)
    open_embedder("gemini", max_batch_size=500, dimensions_mode="never").embed(
        [f"text {n}" for n in range(130)]
    )
    assert [len(request.body["requests"]) for request in server.requests] == [100, 30]


@pytest.mark.parametrize(
    ("name", "setting"), [("openai", "LLM_OPENAI_API_KEY"), ("gemini", "LLM_GEMINI_API_KEY")]
)
def test_the_error_for_an_embedder_without_key_and_url_says_what_to_set(
    plugins: Plugins, context: Context, name: str, setting: str
) -> None:
    with pytest.raises(ConfigurationError, match=setting):
        plugins.open_provider(plugins.embedder(name), {}, context)
