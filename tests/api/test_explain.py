"""`explain` on searches and on queries of conclusions."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from api.conftest import Api

pytestmark = [pytest.mark.every_storage("sqlite"), pytest.mark.every_index]

PARTS = {
    "score": float,
    "text": {"rank": int, "share": float, "score": float, "own_score": float},
    "vector": {"rank": int, "share": float, "similarity": float},
    "boosts": {"name": float, "date": float, "asker": float},
    "source": type(None),
}
NO_VECTORS: dict[str, dict[str, Any]] = {"text": {"vector": type(None)}, "vector": {}}
"""The default embedder makes vectors of conclusions only."""
HEADER = "X-Memservice-Explain"


def shape(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: shape(inner) for key, inner in value.items()}
    return type(value)


@pytest.fixture
def talk(api: Api) -> Api:
    api.say("s", ("alice", "I planted tomatoes"), ("bob", "The telescope arrived"))
    pair = {"observer_id": "alice", "observed_id": "alice"}
    api.post("/conclusions", {"conclusions": [{"content": "planted tomatoes", **pair}]})
    return api


SEARCHES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("/search", {}),
    ("/sessions/s/search", {}),
    ("/peers/alice/search", {}),
    ("/conclusions/query", {"filters": {"observer": "alice", "observed": "alice"}}),
)


@pytest.mark.parametrize(("path", "extra"), SEARCHES)
def test_results_are_the_same_with_the_parts_of_each_score(
    talk: Api, path: str, extra: dict[str, Any]
) -> None:
    body = {"query": "tomatoes", **extra}
    plain = talk.post(path, {**body, "explain": False})
    assert HEADER not in plain.headers
    explained = talk.post(path, {**body, "explain": True})
    items = talk.ok(explained)
    lists, parts = ["text"], PARTS
    if path.startswith("/conclusions"):
        lists, parts = ["text", "vector"], {name: PARTS[name] for name in PARTS if name != "source"}
    assert shape(items[0].pop("explanation")) == {**parts, **NO_VECTORS[lists[-1]]}
    for item in items[1:]:
        assert item.pop("explanation").keys() == parts.keys()
    assert items == talk.ok(plain)
    whole = json.loads(explained.headers[HEADER])
    assert whole["lists"] == lists
    assert whole["fusion_k"] == 20
    assert whole["candidates"] - sum(whole["removed"].values()) == len(items)


def test_a_filter_that_leaves_nothing_is_seen(talk: Api) -> None:
    body = {"query": "tomatoes", "explain": True, "filters": {"metadata": {"a": 1}}}
    answer = talk.post("/search", body)
    assert talk.ok(answer) == []
    assert json.loads(answer.headers[HEADER])["removed"] == {"filters": 2, "limit": 0}


def test_explain_is_a_boolean(talk: Api) -> None:
    talk.refused(talk.post("/search", {"query": "x", "explain": "maybe"}), ["body", "explain"])
