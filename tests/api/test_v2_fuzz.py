"""Whatever is sent to the second generation, by whichever client, the answer is one of the
contract's: never a 5xx, always JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from api.test_attacks_across import own_handlers_of_v2
from api.test_fuzz import bodies, content_types, drawn_path, queries
from memservice.api import v2
from memservice.api.routing import Operation, walk
from support.api.v2_client import CLIENTS
from support.examples import examples

if TYPE_CHECKING:
    from api.conftest import Api

OPERATIONS = [operation for operation, _ in walk(v2.GROUPS)]

LISTING = {
    "filters": {"AND": [{"metadata": {"a": {"gt": 1}}}, {"session_id": "__global_observations__"}]},
    "is_active": True,
}
VALID: dict[str, Any] = {
    "/v2/workspaces": {
        "id": "fuzz",
        "metadata": {"a": 1},
        "configuration": {"deriver": {"enabled": True}, "reasoning": {"enabled": False}},
    },
    "/search": {"query": "tea", "filters": {"peer_id": "alice"}, "limit": 10},
    "/peers": {"id": "alice", "metadata": {"a": {"b": [1]}}, "configuration": {"observe_me": True}},
    "/representation": {
        "target": "bob",
        "search_query": "tea",
        "search_top_k": 5,
        "max_observations": 9,
        "include_most_derived": True,
    },
    "/card": {"peer_card": ["Name: Alice", "Likes tea"]},
    "/chat": {"queries": ["Who?", "Where?"], "stream": True, "target": "bob"},
    "/sessions": {
        "id": "s",
        "peers": {"alice": {"observe_me": True}},
        "configuration": {"deriver": {"enabled": True}},
        "is_active": True,
    },
    "/sessions/<session_id>/peers": {"alice": {"observe_me": False, "observe_others": None}},
    "/config": {"observe_me": True, "observe_others": False},
    "/messages/": {
        "messages": [
            {
                "content": "hello",
                "peer_id": "alice",
                "configuration": {"deriver": {"enabled": False}},
            }
        ]
    },
    "/messages": {
        "messages": [
            {
                "content": "hello",
                "peer_id": "alice",
                "metadata": {"n": 1},
                "created_at": "2024-01-01T00:00:00",
            }
        ]
    },
    "/observations": {
        "observations": [
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
    "/list": LISTING,
    "/messages/list": {"filter": {"n": 1, "peer_id": {"ne": "alice"}}},
    "/trigger_dream": {"observer": "alice", "dream_type": "agent"},
    "/schedule_dream": {"observer": "alice", "dream_type": "omni", "session_id": "s"},
    "/webhooks": {"url": "https://93.184.215.14/hook"},
}
"""A good body for each route, by how its path ends: the longest ending counts."""
clients = st.none() | st.sampled_from(sorted(CLIENTS))


def cases() -> list[Any]:
    """Operations with the handler of one of generation 3, whose tests send requests to it, are left
    to the profile `full`."""
    own = own_handlers_of_v2()
    return [
        pytest.param(
            operation,
            id=f"{operation.method} {operation.rule}",
            marks=() if (operation.method, operation.rule) in own else pytest.mark.heavy,
        )
        for operation in OPERATIONS
    ]


def good_body(operation: Operation) -> Any:
    endings = [ending for ending in VALID if operation.rule.endswith(ending)]
    return VALID[max(endings, key=len)] if endings else {}


@pytest.mark.slow
@pytest.mark.parametrize("operation", cases())
@settings(
    max_examples=examples(12),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(data=st.data())
def test_no_request_breaks_the_server(api: Api, operation: Operation, data: st.DataObject) -> None:
    path = drawn_path(operation, data)
    client = data.draw(clients)
    generation, headers = ("v2", {}) if client is None else CLIENTS[client]
    if path.startswith("/v2/workspaces"):
        path = path.replace("/v2/", f"/{generation}/", 1)
    answer = api.client.open(
        path + "?" + data.draw(queries(operation)),
        method=operation.method,
        data=data.draw(bodies(operation, good_body(operation))),
        content_type=data.draw(content_types),
        headers=headers,
    )
    assert answer.status_code in {200, 202, 204, 400, 404, 405, 409, 422, 307}, (
        answer.status_code,
        answer.text[:300],
    )
    if answer.status_code == 422:
        detail = answer.get_json()["detail"]
        assert detail
        assert all(problem.keys() == {"loc", "msg", "type"} for problem in detail)
        assert {problem["loc"][0] for problem in detail} <= {"path", "query", "body", "header"}
    elif answer.status_code >= 400:
        assert isinstance(answer.get_json()["detail"], str)
    elif answer.mimetype == "application/json":
        assert answer.data == b"null" or answer.get_json() is not None
