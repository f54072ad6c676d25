"""Whatever is sent, the answer is one of the contract's: never a 5xx, always JSON, and a 422 says
where."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from marshmallow import Schema

from memservice.api import health, v3
from memservice.api.routing import Operation, walk
from support.examples import examples

if TYPE_CHECKING:
    from api.conftest import Api

GROUPS = (health.routes, *v3.GROUPS)
OPERATIONS = [operation for operation, _ in walk(GROUPS)]

VALID: dict[str, Any] = {
    "/v3/workspaces": {
        "id": "fuzz",
        "metadata": {"a": 1},
        "configuration": {"summary": {"enabled": True, "messages_per_short_summary": 20}},
    },
    "/search": {"query": "tea", "filters": {"peer_id": "alice"}, "limit": 10, "scope": None},
    "/peers": {"id": "alice", "metadata": {"a": {"b": [1]}}, "configuration": {"observe_me": True}},
    "/representation": {
        "target": "bob",
        "filters": {"session_id": ["s"]},
        "search_query": "tea",
        "search_top_k": 5,
        "max_conclusions": 9,
    },
    "/card": {"peer_card": ["Name: Alice", "Likes tea"]},
    "/sessions": {
        "id": "s",
        "peers": {"alice": {"observe_me": True}},
        "scopes": ["mine"],
        "configuration": {"reasoning": {"enabled": True}},
    },
    "/sessions/<session_id>/peers": {"alice": {"observe_me": False, "observe_others": None}},
    "/config": {"observe_me": True, "observe_others": False},
    "/messages": {
        "messages": [
            {
                "content": "hello",
                "peer_id": "alice",
                "metadata": {"n": 1},
                "created_at": "2024-01-01T00:00:00Z",
            }
        ]
    },
    "/conclusions": {
        "conclusions": [
            {
                "content": "likes tea",
                "observer_id": "alice",
                "observed_id": "bob",
                "session_id": "s",
            }
        ]
    },
    "/query": {
        "query": "tea",
        "top_k": 5,
        "distance": 0.5,
        "filters": {"observer": "alice", "observed": "bob"},
    },
    "/list": {
        "filters": {
            "AND": [
                {"metadata": {"a": {"gt": 1}}},
                {"NOT": [{"created_at": {"lte": "2024-01-01"}}]},
            ]
        },
        "kind": "all",
    },
}
"""A good body for each route, by how its path ends: the longest ending counts."""

FIELDS = [
    "id",
    "metadata",
    "created_at",
    "peer_id",
    "session_id",
    "workspace_id",
    "is_active",
    "token_count",
    "observer",
    "observed_id",
]
FIELDS += [
    "level",
    "content",
    "source_ids",
    "times_derived",
    "AND",
    "OR",
    "NOT",
    "session_name",
    "peer_perspective",
    "embedding",
    "configuration",
]
OPERATORS = ["gt", "gte", "lt", "lte", "ne", "in", "contains", "icontains", "about", "*"]

odd_text = st.sampled_from(
    [
        "",
        "\0",
        "a\0b",
        "scope.mine",
        "*",
        "%",
        "_",
        "\u202e",
        "é",
        "🙂",
        "a" * 600,
        "null",
        "1",
        "-1",
        "1e999",
        "2024-01-01",
        "NaN",
    ]
)
texts = odd_text | st.text(max_size=12)
numbers = (
    st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from([0, -1, 101, 1.5, 2**53, -0.0, 5e-324])
)
scalars = st.none() | st.booleans() | numbers | texts
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(texts | st.sampled_from(FIELDS + OPERATORS), inner, max_size=3)
    ),
    max_leaves=8,
)
filters = st.dictionaries(
    st.sampled_from(FIELDS),
    values | st.dictionaries(st.sampled_from(OPERATORS), values, max_size=2),
    max_size=3,
)
raw_bodies = st.binary(max_size=40) | st.sampled_from(
    [
        b"",
        b"null",
        b"{",
        b'{"id": NaN}',
        b'{"id": "\\ud800"}',
        b"[" * 3_000,
        b'{"id":1e400}',
        b"\xff",
        b'{"id":' + b"9" * 400 + b"}",
    ]
)
names = st.sampled_from(["fuzz", "alice", "bob", "s", "list", "search", "nobody"]) | texts.filter(
    lambda text: text not in ("", ".", "..")
)
content_types = st.sampled_from(["application/json"] * 9 + [None, "text/plain"])


def good_body(operation: Operation) -> Any:
    endings = [ending for ending in VALID if operation.rule.endswith(ending)]
    return VALID[max(endings, key=len)] if endings else {}


def changed(draw: Callable[[st.SearchStrategy[Any]], Any], value: Any) -> Any:
    """`value` with something in it replaced, added or taken away."""
    if isinstance(value, dict) and value and draw(st.integers(0, 3)):
        key = draw(st.sampled_from(sorted(value)))
        if key == "filters" and draw(st.booleans()):
            return {**value, key: draw(filters)}
        how = draw(st.integers(0, 5))
        if how == 0:
            return {name: inner for name, inner in value.items() if name != key}
        if how == 1:
            return {**value, draw(texts): draw(values)}
        return {**value, key: changed(draw, value[key])}
    if isinstance(value, list) and value and draw(st.integers(0, 2)):
        index = draw(st.integers(0, len(value) - 1))
        return [*value[:index], changed(draw, value[index]), *value[index + 1 :]]
    return draw(values)


@st.composite
def bodies(
    draw: Callable[[st.SearchStrategy[Any]], Any], operation: Operation, good: Any = None
) -> bytes:
    how = draw(st.integers(0, 9))
    if how == 0:
        return bytes(draw(raw_bodies))
    if how == 1:
        return json.dumps(draw(values)).encode()
    body = good_body(operation) if good is None else good
    for _ in range(draw(st.integers(0, 2))):
        body = changed(draw, body)
    return json.dumps(body, ensure_ascii=draw(st.booleans())).encode("utf-8", "surrogatepass")


def queries(operation: Operation) -> st.SearchStrategy[str]:
    return _queries(operation.query)


@cache
def _queries(schema: type[Schema] | None) -> st.SearchStrategy[str]:
    """Made once, since the first draw from a new strategy validates it."""
    declared = list(schema().fields) if schema else []
    parameter = st.tuples(st.sampled_from([*declared, "unknown"]), scalars.map(str) | texts)
    return st.lists(parameter, max_size=3).map(
        lambda parameters: "&".join(
            f"{name}={quote(value, errors='replace')}" for name, value in parameters
        )
    )


def drawn_path(operation: Operation, data: st.DataObject) -> str:
    """The operation's path with a name for each parameter: mostly a workspace that exists."""
    parts = []
    for part in operation.rule.split("/"):
        if part == "<workspace_id>" and data.draw(st.integers(0, 5)):
            parts.append("fuzz")
        elif part.startswith("<"):
            parts.append(quote(data.draw(names), safe=""))
        else:
            parts.append(part)
    return "/".join(parts)


@pytest.mark.slow
@pytest.mark.parametrize(
    "operation", OPERATIONS, ids=lambda operation: f"{operation.method} {operation.rule}"
)
@settings(
    max_examples=examples(10),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(data=st.data())
def test_no_request_breaks_the_server(api: Api, operation: Operation, data: st.DataObject) -> None:
    path = drawn_path(operation, data)
    answer = api.client.open(
        path + "?" + data.draw(queries(operation)),
        method=operation.method,
        data=data.draw(bodies(operation)),
        content_type=data.draw(content_types),
    )
    if operation.rule == "/health":
        assert answer.status_code == 200
    assert answer.status_code in {200, 201, 202, 204, 400, 404, 405, 422, 307}, (
        answer.status_code,
        answer.text[:300],
    )
    if answer.status_code in (204, 307):
        assert answer.data == b""
        return
    body = answer.get_json()
    if answer.status_code == 422:
        assert isinstance(body["detail"], list)
        assert body["detail"]
        assert all(problem.keys() == {"loc", "msg", "type"} for problem in body["detail"])
        assert {problem["loc"][0] for problem in body["detail"]} <= {
            "path",
            "query",
            "body",
            "header",
        }
    elif answer.status_code >= 400:
        assert isinstance(body["detail"], str)
