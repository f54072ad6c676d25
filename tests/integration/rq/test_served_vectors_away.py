"""A served process whose vectors are in Qdrant: it goes away, writes and searches go on, and when
it is back all is healed by itself."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from support.clients.server import serving
from support.processes.processes import eventually
from support.stores.qdrant_stand_in import QdrantStandIn

pytestmark = pytest.mark.e2e

SEARCH_SECONDS = 1.0


@pytest.fixture
def qdrant() -> Iterator[QdrantStandIn]:
    stand_in = QdrantStandIn()
    yield stand_in
    stand_in.stop()


@pytest.fixture
def http(qdrant: QdrantStandIn, tmp_path: Path) -> Iterator[httpx.Client]:
    settings = {
        "VECTOR_STORE_TYPE": "qdrant",
        "VECTOR_STORE_URL": qdrant.url,
        "VECTOR_STORE_QUERY_TIMEOUT_SECONDS": str(SEARCH_SECONDS),
        "VECTOR_STORE_RECONCILIATION_INTERVAL_SECONDS": "1",
        "WORKER_RETRY_BACKOFF_SECONDS": "0.2",
        "DERIVER_ENABLED": "false",
    }
    with (
        serving(tmp_path, **settings) as server,
        httpx.Client(base_url=server.url, timeout=20) as client,
    ):
        client.post("/v3/workspaces", json={"id": "w"}).raise_for_status()
        client.post("/v3/workspaces/w/peers", json={"id": "alice"}).raise_for_status()
        yield client


def conclude(http: httpx.Client, *texts: str) -> None:
    drafts = [{"content": text, "observer_id": "alice", "observed_id": "alice"} for text in texts]
    assert (
        http.post("/v3/workspaces/w/conclusions", json={"conclusions": drafts}).status_code == 201
    )


def matching(http: httpx.Client, query: str) -> list[str]:
    query_body: dict[str, Any] = {
        "query": query,
        "top_k": 9,
        "filters": {"observer_id": "alice", "observed_id": "alice"},
    }
    answer = http.post("/v3/workspaces/w/conclusions/query", json=query_body)
    assert answer.status_code == 200, answer.text
    return [each["content"] for each in answer.json()]


def vectors(http: httpx.Client) -> tuple[int, str, str]:
    """Status of the whole; state of the index and advice."""
    answer = http.get("/health/ready")
    (check,) = [one for one in answer.json()["checks"] if one["name"] == "vectors"]
    return answer.status_code, check["state"], check["advice"]


# By default, test_vectors_away.py does this without a server.
@pytest.mark.heavy
@pytest.mark.parametrize("empty", [False, True], ids=["as-it-was", "empty"])
def test_vectors_are_repaired_automatically_after_an_outage(
    http: httpx.Client, qdrant: QdrantStandIn, empty: bool
) -> None:
    before = {"Alice likes green tea.", "Alice owns a boat."}
    conclude(http, *before)
    eventually(lambda: qdrant.points == 2, what="the worker stores the vectors")
    assert set(matching(http, "houseboat")) == before, "by vectors: no word is the same"
    assert vectors(http) == (200, "ok", "")

    qdrant.stop()
    eventually(lambda: vectors(http)[1] != "ok", what="the answer is kept for two seconds")
    status, state, advice = vectors(http)
    assert (status, state) == (200, "degraded")
    assert "VECTOR_STORE_URL" in advice
    assert "127.0.0.1" not in advice
    conclude(http, "Alice keeps bees.")
    began = time.monotonic()
    matches = matching(http, "bees")
    assert matches[0] == "Alice keeps bees.", "from text alone"
    assert set(matches) == {*before, "Alice keeps bees."}, (
        "what the index does not return is there all the same"
    )
    assert time.monotonic() - began < SEARCH_SECONDS + 1

    qdrant.start(empty=empty)
    eventually(lambda: qdrant.points == 3, what="what was missed, or lost, is stored")
    answered = qdrant.queries

    def vectors_answer() -> bool:
        return (
            set(matching(http, "houseboat")) == {*before, "Alice keeps bees."}
            and qdrant.queries > answered
        )

    eventually(vectors_answer, what="vectors answer again")
    eventually(lambda: vectors(http) == (200, "ok", ""), what="readiness says so")
