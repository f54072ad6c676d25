"""Searching messages: in a workspace, a session, by a peer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from api.conftest import Api

pytestmark = [pytest.mark.every_storage("sqlite"), pytest.mark.every_index]


@pytest.fixture
def talk(api: Api) -> Api:
    api.say(
        "kitchen",
        ("alice", "I planted tomatoes in the garden behind the house"),
        ("bob", "My telescope arrived from Norway yesterday"),
        ("alice", "The bakery on Elm Street sells rye bread"),
    )
    api.say(
        "office",
        ("carol", "The quarterly budget meeting moved to Thursday"),
        ("bob", "I will bring rye bread to the meeting"),
    )
    return api


def contents(api: Api, path: str, query: str, **body: Any) -> list[str]:
    return [item["content"] for item in api.ok(api.post(path, {"query": query, **body}))]


def test_workspace_search_answers_plain_messages_best_first(talk: Api) -> None:
    messages = talk.ok(talk.post("/search", {"query": "telescope from Norway"}))
    assert isinstance(messages, list)
    assert messages[0]["content"] == "My telescope arrived from Norway yesterday"
    assert list(messages[0]) == [
        "id",
        "content",
        "peer_id",
        "session_id",
        "metadata",
        "created_at",
        "workspace_id",
        "token_count",
    ]
    assert messages[0]["workspace_id"] == talk.workspace


def test_session_search_stays_in_the_session(talk: Api) -> None:
    assert (
        contents(talk, "/sessions/office/search", "rye bread")[0]
        == "I will bring rye bread to the meeting"
    )
    assert {
        item["session_id"]
        for item in talk.ok(talk.post("/sessions/office/search", {"query": "rye bread"}))
    } == {"office"}


def test_peer_search_finds_what_the_peer_wrote(talk: Api) -> None:
    assert {
        item["peer_id"] for item in talk.ok(talk.post("/peers/bob/search", {"query": "rye bread"}))
    } == {"bob"}


@pytest.mark.slow
def test_limit(talk: Api) -> None:
    talk.say("many", *[("alice", f"apples and pears number {number}") for number in range(30)])
    assert len(contents(talk, "/search", "apples and pears")) == 10
    assert len(contents(talk, "/search", "apples and pears", limit=25)) == 25
    assert len(contents(talk, "/search", "apples and pears", limit="3")) == 3
    for wrong in (0, 101, None, "many", 2.5):
        talk.refused(talk.post("/search", {"query": "x", "limit": wrong}), ["body", "limit"])


def test_query_is_required_but_may_be_empty(talk: Api) -> None:
    for path in ("/search", "/sessions/office/search", "/peers/bob/search"):
        talk.refused(talk.post(path, {}), ["body", "query"])
        talk.refused(talk.post(path, {"query": None}), ["body", "query"])
        talk.refused(talk.post(path, {"query": ["x"]}), ["body", "query"])
        talk.refused(talk.post(path), ["body"])
        assert isinstance(talk.ok(talk.post(path, {"query": ""})), list)
        assert isinstance(talk.ok(talk.post(path, {"query": "\0 \0", "filters": None})), list)


@pytest.mark.slow
@pytest.mark.parametrize(
    "query",
    [
        "-",
        ".",
        "%",
        "_",
        '"AND OR NOT ( *',
        "日本語",
        "🙂",
        "a" * 10_000,
        "NEAR(x y)",
        "';--",
        "\u202e",
    ],
)
def test_queries_of_any_kind_are_answered(talk: Api, query: str) -> None:
    for path in ("/search", "/sessions/office/search", "/peers/bob/search"):
        assert isinstance(talk.ok(talk.post(path, {"query": query})), list)


def test_unknown_workspaces_sessions_and_peers_have_no_results(talk: Api) -> None:
    assert contents(talk, "/sessions/none/search", "rye") == []
    assert contents(talk, "/peers/nobody/search", "rye") == []
    assert talk.ok(talk.post("//v3/workspaces/unknown-one/search", {"query": "rye"})) == []


def test_filters_restrict_results(talk: Api) -> None:
    assert set(contents(talk, "/search", "rye bread", filters={"peer_id": "alice"})) <= {
        "I planted tomatoes in the garden behind the house",
        "The bakery on Elm Street sells rye bread",
    }
    matching = contents(talk, "/search", "rye bread", filters={"session_id": "office"})
    assert matching[0] == "I will bring rye bread to the meeting"
    assert "The bakery on Elm Street sells rye bread" not in matching
    talk.refused(talk.post("/search", {"query": "rye", "filters": {"content": "rye"}}))
    talk.refused(talk.post("/search", {"query": "rye", "filters": ["x"]}), ["body", "filters"])


def test_the_routes_own_condition_overrides_the_filter(talk: Api) -> None:
    assert contents(
        talk,
        "/sessions/office/search",
        "rye bread",
        filters={"session_id": "kitchen", "workspace_id": "other"},
    )
    assert {
        item["peer_id"]
        for item in talk.ok(
            talk.post("/peers/bob/search", {"query": "rye", "filters": {"peer_id": "alice"}})
        )
    } == {"bob"}


def test_perspective_shows_messages_during_the_membership(talk: Api) -> None:
    matching = contents(talk, "/search", "rye bread", filters={"peer_perspective": "carol"})
    assert "I will bring rye bread to the meeting" in matching
    assert "The bakery on Elm Street sells rye bread" not in matching
    assert contents(talk, "/search", "rye bread", filters={"peer_perspective": "nobody"}) == []
    talk.refused(talk.post("/search", {"query": "rye", "filters": {"peer_perspective": 5}}))


def test_a_scope_restricts_results_to_its_sessions(talk: Api) -> None:
    talk.session("other", scopes=["empty"])
    talk.ok(talk.post("/sessions", {"id": "office", "scopes": ["work"]}))
    matching = contents(talk, "/search", "rye bread", scope="work")
    assert matching[0] == "I will bring rye bread to the meeting"
    assert "The bakery on Elm Street sells rye bread" not in matching
    assert contents(talk, "/search", "rye bread", scope="empty") == []
    talk.missing(talk.post("/search", {"query": "rye", "scope": "unknown"}), "unknown")
    talk.refused(
        talk.post("/search", {"query": "rye", "scope": "work", "filters": {"session_id": "office"}})
    )


def test_nothing_of_another_workspace_is_found(talk: Api) -> None:
    other = f"{talk.workspace}-other"
    talk.ok(
        talk.post(
            f"//v3/workspaces/{other}/sessions/s/messages",
            {"messages": [{"content": "rye bread secret", "peer_id": "eve"}]},
        ),
        201,
    )
    assert "rye bread secret" not in contents(talk, "/search", "rye bread secret", limit=100)
