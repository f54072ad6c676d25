"""What one generation writes, the other reads: every noun, both ways."""

from __future__ import annotations

from typing import Any

import pytest

from api.conftest import Api
from support.api.v2_client import V2Client
from support.api.v2_client import v2 as v2

pytestmark = pytest.mark.every_index

WRITERS = ("v2", "v3")


class Pair:
    """One of the generations writes, the other reads."""

    def __init__(self, v2: V2Client, writer: str) -> None:
        self.v2 = v2
        self.older = writer == "v2"
        both: tuple[Api, Api] = (v2, v2.newest)
        self.writer, self.reader = both if self.older else both[::-1]
        self.memory = (
            ("observations", "conclusions") if self.older else ("conclusions", "observations")
        )

    def written(self, method: str, path: str, body: Any = ...) -> Any:
        answer = self.writer.call(method, path, body)
        assert answer.status_code // 100 == 2, answer.text
        return answer.get_json() if answer.data else None

    def read(self, method: str, path: str, body: Any = ..., **options: Any) -> Any:
        answer = self.reader.call(method, path, body, **options)
        assert answer.status_code // 100 == 2, answer.text
        return answer.get_json() if answer.data else None


@pytest.fixture(params=WRITERS)
def pair(request: pytest.FixtureRequest, v2: V2Client) -> Pair:
    return Pair(v2, request.param)


def test_workspaces_are_shared(pair: Pair) -> None:
    pair.written(
        "PUT",
        "",
        {"metadata": {"a": 1}, "configuration": {"summary": {"enabled": False}, "own": 1}},
    )
    workspace = pair.read("PUT", "", {})
    assert (workspace["metadata"], workspace["configuration"]) == (
        {"a": 1},
        {"summary": {"enabled": False}, "own": 1},
    )
    pair.written("DELETE", "")
    answer = pair.reader.delete("")
    assert answer.status_code == 404


def test_a_workspace_with_sessions_is_deleted_by_the_older_generation_only(v2: V2Client) -> None:
    v2.say("s", ("a", "Hello."))
    assert v2.newest.delete("").status_code == 409
    assert v2.delete("").status_code == 200
    v2.missing(v2.newest.delete(""), v2.workspace)


def test_session_configuration_is_translated(pair: Pair) -> None:
    here, there = ("deriver", "reasoning") if pair.older else ("reasoning", "deriver")
    pair.written("PUT", "/sessions/s", {"configuration": {here: {"enabled": False}}})
    assert pair.read("PUT", "/sessions/s", {})["configuration"] == {there: {"enabled": False}}


def test_peers_and_cards_are_shared(pair: Pair) -> None:
    peer = pair.written(
        "POST", "/peers", {"id": "a", "metadata": {"x": 1}, "configuration": {"observe_me": False}}
    )
    assert pair.read("POST", "/peers", {"id": "a"}) == peer
    assert pair.reader.ids("/peers/list") == ["a"]
    pair.written("PUT", "/peers/a/card", {"peer_card": ["Name: Ann"]})
    assert pair.read("GET", "/peers/a/card") == {"peer_card": ["Name: Ann"]}


def test_sessions_and_members_are_shared(pair: Pair) -> None:
    pair.written(
        "POST",
        "/sessions",
        {"id": "s", "metadata": {"x": 1}, "peers": {"a": {"observe_others": True}, "b": {}}},
    )
    session = pair.read("POST", "/sessions", {"id": "s"})
    assert (session["metadata"], session["is_active"]) == ({"x": 1}, True)
    assert {item["id"] for item in pair.read("GET", "/sessions/s/peers")["items"]} == {"a", "b"}
    assert pair.read("GET", "/sessions/s/peers/a/config") == {
        "observe_me": None,
        "observe_others": True,
    }
    assert pair.reader.ids("/peers/a/sessions") == ["s"]
    clone = pair.written("POST", "/sessions/s/clone")
    assert pair.reader.ids("/sessions/list") == ["s", clone["id"]]
    pair.written("DELETE", "/sessions/s")
    assert pair.reader.ids("/sessions/list") == [clone["id"]]
    pair.reader.missing(pair.reader.post("/sessions", {"id": "s"}), "s")


def test_messages_search_and_context_are_shared(pair: Pair) -> None:
    messages = pair.written(
        "POST",
        "/sessions/s/messages",
        {"messages": [{"peer_id": "a", "content": "The tortoise is called Balthazar."}]},
    )
    assert pair.read("POST", "/sessions/s/messages/list")["items"] == messages
    assert pair.read("GET", f"/sessions/s/messages/{messages[0]['id']}") == messages[0]
    assert pair.read("POST", "/search", {"query": "Balthazar"}) == messages
    assert pair.read("GET", "/sessions/s/context")["messages"] == messages
    changed = pair.written(
        "PUT", f"/sessions/s/messages/{messages[0]['id']}", {"metadata": {"x": 1}}
    )
    assert pair.read("GET", f"/sessions/s/messages/{messages[0]['id']}") == changed
    status = pair.read("GET", "/queue/status")
    assert (status["total_work_units"], status["pending_work_units"]) == (1, 1)
    assert (
        "Balthazar"
        in pair.read("POST", "/peers/a/chat", {"query": "What is the tortoise called?"})["content"]
    )


def test_conclusions_are_shared(pair: Pair) -> None:
    here, there = pair.memory
    pair.written("POST", "/peers", {"id": "a"})
    pair.written("POST", "/sessions", {"id": "s"})
    facts = [
        {"content": text, "observer_id": "a", "observed_id": "a", "session_id": "s"}
        for text in ("a sings", "a dances")
    ]
    conclusions = pair.written("POST", f"/{here}", {here: facts})
    keys = ("id", "content", "observer_id", "observed_id", "session_id", "created_at")
    answer = pair.read("POST", f"/{there}/list", {})["items"]
    assert [[item[key] for key in keys] for item in answer] == [
        [item[key] for key in keys] for item in conclusions[::-1]
    ]
    query = {"query": "dances", "top_k": 1, "filters": {"observer": "a", "observed": "a"}}
    assert [item["id"] for item in pair.read("POST", f"/{there}/query", query)] == [
        conclusions[1]["id"]
    ]
    markdown = str(pair.read("POST", "/peers/a/representation", {})["representation"])
    assert "a sings" in markdown
    assert "a dances" in markdown
    pair.written("DELETE", f"/{here}/{conclusions[0]['id']}")
    assert pair.reader.ids(f"/{there}/list") == [conclusions[1]["id"]]


def test_webhooks_are_shared(pair: Pair) -> None:
    pair.written("POST", "/peers", {"id": "a"})
    endpoint = pair.written("POST", "/webhooks", {"url": "https://93.184.215.14/hook"})
    assert [item["id"] for item in pair.read("GET", "/webhooks")["items"]] == [endpoint["id"]]
    assert pair.read("POST", "/webhooks", {"url": endpoint["url"]})["id"] == endpoint["id"]
    pair.written("DELETE", f"/webhooks/{endpoint['id']}")
    assert pair.read("GET", "/webhooks")["items"] == []
