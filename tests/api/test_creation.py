"""What an unknown name means on every route: created, missing, or empty."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from memservice.domain.records import Peer, Session, Workspace

if TYPE_CHECKING:
    from api.conftest import Api

NO_BODY: Any = ...
MESSAGES = {"messages": [{"peer_id": "p", "content": "x"}]}
CONCLUSIONS = {"conclusions": [{"content": "x", "observer_id": "p", "observed_id": "p"}]}
PAIR = {"query": "x", "filters": {"observer": "p", "observed": "p"}}

CREATING: list[tuple[str, str, Any, int, tuple[int, int]]] = [
    # Method, path, body, status, how many sessions and peers are created.
    ("PUT", "", {}, 200, (0, 0)),
    ("POST", "/peers", {"id": "p"}, 201, (0, 1)),
    ("PUT", "/peers/p", {}, 200, (0, 1)),
    ("PUT", "/peers/p/card", {"peer_card": ["a"]}, 200, (0, 1)),
    ("POST", "/sessions", {"id": "s"}, 201, (1, 0)),
    ("POST", "/sessions", {"id": "s", "peers": {"p": {}}}, 201, (1, 1)),
    ("PUT", "/sessions/s", {}, 200, (1, 0)),
    ("POST", "/sessions/s/peers", {"p": {}}, 200, (1, 1)),
    ("POST", "/sessions/s/messages", MESSAGES, 201, (1, 1)),
]
EMPTY: list[tuple[str, str, Any]] = [
    ("POST", "/peers/list", {}),
    ("POST", "/peers/p/sessions", {}),
    ("POST", "/peers/p/representation", {}),
    ("POST", "/peers/p/representation", {"target": "q", "session_id": "s", "search_query": "x"}),
    ("POST", "/peers/p/search", {"query": "x"}),
    ("POST", "/sessions/list", {}),
    ("GET", "/sessions/s/peers", NO_BODY),
    ("GET", "/sessions/s/context", NO_BODY),
    ("GET", "/sessions/s/summaries", NO_BODY),
    ("POST", "/sessions/s/search", {"query": "x"}),
    ("POST", "/sessions/s/messages/list", {}),
    ("POST", "/search", {"query": "x"}),
    ("POST", "/search", {"query": "x", "filters": {"peer_perspective": "p"}}),
    ("GET", "/queue/status", NO_BODY),
    ("GET", "/queue/status?observer_id=p&sender_id=p&session_id=s", NO_BODY),
    ("POST", "/conclusions/list", {}),
    ("POST", "/conclusions/query", PAIR),
]
MISSING: list[tuple[str, str, Any]] = [
    ("GET", "/peers/p/card", NO_BODY),
    ("GET", "/peers/p/context", NO_BODY),
    ("DELETE", "/sessions/s", NO_BODY),
    ("POST", "/sessions/s/clone", NO_BODY),
    ("PUT", "/sessions/s/peers", {"p": {}}),
    ("DELETE", "/sessions/s/peers", ["p"]),
    ("GET", "/sessions/s/peers/p/config", NO_BODY),
    ("PUT", "/sessions/s/peers/p/config", {}),
    ("GET", "/sessions/s/context?peer_target=p", NO_BODY),
    ("GET", "/sessions/s/messages/m", NO_BODY),
    ("PUT", "/sessions/s/messages/m", {}),
    ("POST", "/conclusions", CONCLUSIONS),
    ("GET", "/conclusions/c", NO_BODY),
    ("DELETE", "/conclusions/c", NO_BODY),
    ("POST", "/search", {"query": "x", "scope": "unknown"}),
]


def stored(api: Api) -> tuple[int, int, int]:
    with api.runtime.storage.read() as tx:
        return tx.rows.count(Workspace), tx.rows.count(Session), tx.rows.count(Peer)


@pytest.fixture(params=["unknown workspace", "empty workspace"])
def fresh(request: pytest.FixtureRequest, api: Api) -> Api:
    if request.param == "empty workspace":
        api.create()
    return api


@pytest.mark.parametrize(("method", "path", "body", "status", "created"), CREATING)
def test_writes_create_the_named_rows(
    fresh: Api, method: str, path: str, body: Any, status: int, created: tuple[int, int]
) -> None:
    _, sessions, peers = stored(fresh)
    fresh.ok(fresh.call(method, path, body), status)
    assert stored(fresh)[1:] == (sessions + created[0], peers + created[1])
    assert fresh.post("//v3/workspaces", {"id": fresh.workspace}).status_code == 200, (
        "the workspace is there"
    )


@pytest.mark.parametrize(("method", "path", "body"), EMPTY)
def test_reads_of_unknown_rows_are_empty_and_create_nothing(
    fresh: Api, method: str, path: str, body: Any
) -> None:
    before = stored(fresh)
    answer = fresh.ok(fresh.call(method, path, body))
    values = (
        answer
        if isinstance(answer, list)
        else [value for name, value in answer.items() if name not in ("id", "page", "size")]
    )
    assert not any(values)
    assert stored(fresh) == before


@pytest.mark.parametrize(("method", "path", "body"), MISSING)
def test_other_requests_for_unknown_rows_are_404_and_create_nothing(
    fresh: Api, method: str, path: str, body: Any
) -> None:
    before = stored(fresh)
    fresh.missing(fresh.call(method, path, body))
    assert stored(fresh) == before
