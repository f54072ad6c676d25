"""Whatever is sent to the first generation, the answer is one of the contract's: never a 5xx,
always JSON, and a 422 says where."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from api.conftest import Api
from api.test_fuzz import bodies, content_types, names, queries
from memservice.api import v1
from memservice.api.routing import Operation, walk
from support.api.v1_client import V1Client, uid
from support.examples import examples

OPERATIONS = [operation for operation, _ in walk(v1.GROUPS)]


def one_of_each(api: Api) -> dict[str, str]:
    """One of everything, by the name that paths have for it."""
    first = V1Client(api)
    app = first.app(f"fuzz of {api.workspace}")
    user = first.user(app)
    session = first.session(user)
    collection = f"{user}/collections/{first.post(f'{user}/collections', {'name': 'shelf'})['id']}"
    return {
        "app_id": uid(app),
        "user_id": uid(user),
        "session_id": uid(session),
        "collection_id": uid(collection),
        "message_id": first.say(session, (True, "I like tea."))[0]["id"],
        "metamessage_id": first.post(f"{user}/metamessages", {"label": "x", "content": ""})["id"],
        "document_id": first.post(f"{collection}/documents", {"content": "tea"})["id"],
        "name": "alice",
    }


GOOD: dict[str, Any] = {
    "/list": {
        "filter": {"a": {"b": [1]}},
        "is_active": True,
        "label": "x",
        "session_id": "x",
        "message_id": "y",
    },
    "/messages": {"content": "hello", "is_user": True, "metadata": {"n": 1}},
    "/batch": {"messages": [{"content": "hello", "is_user": False, "metadata": {"n": 1}}]},
    "/metamessages": {
        "label": "x",
        "content": "y",
        "session_id": None,
        "message_id": None,
        "metadata": {},
    },
    "<metamessage_id>": {"label": "x", "session_id": "s", "message_id": "m", "metadata": {"n": 1}},
    "/documents": {"content": "The cat sleeps.", "metadata": {"n": 1}},
    "<document_id>": {"content": "The cat runs.", "metadata": None},
    "/query": {"query": "cat", "top_k": 5, "filter": {"n": 1}},
    "/chat": {"queries": ["What is it called?"], "stream": False},
    "": {"name": "somebody", "metadata": {"a": {"b": [1]}}},
}
"""A good body for each route, by how its path ends: the longest ending counts."""


def good_body(operation: Operation) -> Any:
    return GOOD[max((ending for ending in GOOD if operation.rule.endswith(ending)), key=len)]


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
    uids = _world(api)
    path = "/".join(
        quote(uids[part[1:-1]] if data.draw(st.integers(0, 5)) else data.draw(names), safe="")
        if part.startswith("<")
        else part
        for part in operation.rule.split("/")
    )
    answer = api.client.open(
        path + "?" + data.draw(queries(operation)),
        method=operation.method,
        data=data.draw(bodies(operation, good_body(operation))),
        content_type=data.draw(content_types),
    )
    assert answer.status_code in {200, 401, 404, 405, 409, 422, 307}, (
        answer.status_code,
        answer.text[:300],
    )
    if answer.status_code == 307 or answer.mimetype == "text/event-stream":
        return
    body = answer.get_json()
    if answer.status_code == 422:
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


_worlds: dict[tuple[int, str], dict[str, str]] = {}


def _world(api: Api) -> dict[str, str]:
    """The same for all requests of one test. What one of them deletes is not there for the next:
    they are answered as well."""
    key = (id(api.app), api.workspace)
    if key not in _worlds:
        _worlds[key] = one_of_each(api)
    return _worlds[key]
