"""The tools of `MCP_TOOLS=all`: one for each operation of the API."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from api.test_mcp import DEFAULT_TOOLS
from support.api.auth_client import AuthClient
from support.api.mcp_client import McpClient

pytestmark = pytest.mark.slow

PUBLISHED = set(
    """
    list_workspaces create_workspace inspect_workspace search get_metadata set_metadata create_peer
    list_peers chat get_peer_card set_peer_card get_peer_context get_representation create_session
    list_sessions delete_session clone_session add_peers_to_session remove_peers_from_session
    get_session_peers inspect_session add_messages_to_session get_session_messages
    get_session_message get_session_context list_conclusions query_conclusions create_conclusions
    delete_conclusion schedule_dream get_queue_status
    """.split()
)
"""The tools of the published MCP server."""

CONFIRMED = {
    "inspect_workspace": set[str](),
    "create_session": {"session_id"},
    "add_peers_to_session": {"session_id", "peers"},
    "add_messages_to_session": {"session_id", "messages"},
    "get_peer_context": {"peer_id", "target_peer_id"},
}
"""Arguments that public documents show, besides `workspace_id`, which every tool but
`list_workspaces` has. Source: the documentation of the client goose, whose example prints these
calls (`documentation/docs/mcp/honcho-mcp.md` of block/goose, Apache-2.0)."""


@pytest.fixture(scope="module")
def opened() -> Iterator[AuthClient]:
    auth_client = AuthClient.open(MCP_TOOLS="all")
    yield auth_client
    auth_client.close()


@pytest.fixture
def mcp(opened: AuthClient) -> Iterator[McpClient]:
    with opened.undone():
        yield McpClient(opened.client, "/mcp/acme/alice", opened.admin)


@pytest.fixture
def message_ids(mcp: McpClient) -> list[str]:
    """Ids of messages in the session trip of alice and bot."""
    mcp.call("create_session", session_id="trip", peers={"alice": {}, "bot": {"observe_me": False}})
    answer = mcp.call(
        "add_messages_to_session",
        session_id="trip",
        messages=[
            {"peer_id": "alice", "content": "I live in Ghent.", "metadata": {"mood": "good"}},
            {"peer_id": "bot", "content": "Noted.", "created_at": "2024-01-01T00:00:00Z"},
        ],
    )
    ids: list[str] = answer["ids"]
    return ids


def ids(items: list[Any]) -> list[str]:
    return [item["id"] for item in items]


def test_all_tools_are_listed(mcp: McpClient) -> None:
    tools = {tool["name"]: tool for tool in mcp.ask("tools/list")["result"]["tools"]}
    assert len(PUBLISHED) == 31
    assert tools.keys() == PUBLISHED | DEFAULT_TOOLS
    for name, tool in tools.items():
        assert ("workspace_id" in tool["inputSchema"]["properties"]) == (
            name in PUBLISHED - {"list_workspaces"}
        ), name
    reading = {name for name, tool in tools.items() if tool["annotations"]["readOnlyHint"]}
    assert reading & PUBLISHED == {
        name
        for name in PUBLISHED
        if name.startswith(("get_", "list_", "inspect_", "query_", "search", "chat"))
    }
    writing = {
        name
        for name, tool in tools.items()
        if name not in reading and not tool["annotations"]["destructiveHint"]
    }
    assert writing == {
        "remember",
        "create_workspace",
        "clone_session",
        "add_messages_to_session",
        "create_conclusions",
    }


def test_calls_of_clients_of_the_published_server(mcp: McpClient) -> None:
    """As the source of `CONFIRMED` prints them."""
    tools = {tool["name"]: tool for tool in mcp.ask("tools/list")["result"]["tools"]}
    for name, arguments in CONFIRMED.items():
        assert arguments <= tools[name]["inputSchema"]["properties"].keys(), name
    mcp.call("create_workspace")
    mcp.call("inspect_workspace")
    mcp.call("create_session", session_id="today")
    mcp.call(
        "add_peers_to_session",
        session_id="today",
        peers=[
            {"peer_id": "user", "observe_me": True, "observe_others": True},
            {"peer_id": "Assistant", "observe_me": False, "observe_others": True},
        ],
    )
    mcp.call(
        "add_messages_to_session",
        session_id="today",
        messages=[
            {"peer_id": "user", "content": "Do you have a memory?"},
            {"peer_id": "Assistant", "content": "I do."},
        ],
    )
    peer_context = mcp.call("get_peer_context", peer_id="Assistant", target_peer_id="user")
    assert peer_context["peer"] == "user"
    members = mcp.call("get_session_peers", session_id="today")["peers"]
    assert set(ids(members)) == {"user", "Assistant"}


@pytest.mark.parametrize("name", ["target", "target_peer_id"])
def test_the_other_peer_has_two_names(mcp: McpClient, message_ids: list[str], name: str) -> None:
    """That of the published server, and that of `/v3`."""
    pair = {"peer_id": "bot", name: "alice"}
    mcp.call("set_peer_card", peer_card=["Lives in Ghent"], **pair)
    assert mcp.call("get_peer_card", **pair) == {"peer_card": ["Lives in Ghent"]}
    assert mcp.call("get_peer_context", **pair)["peer"] == "alice"
    assert mcp.call("get_peer_card", peer_id="bot") == {"peer_card": None}


def test_workspaces(mcp: McpClient, message_ids: list[str]) -> None:
    created = mcp.call("create_workspace", workspace_id="second", metadata={"a": 1})
    assert (created["id"], created["metadata"]) == ("second", {"a": 1})
    assert ids(mcp.call("list_workspaces")["workspaces"]) == ["second", "acme"]
    answer = mcp.call("inspect_workspace")
    assert (answer["id"], answer["messages"], answer["sessions"]) == ("acme", 2, ["trip"])
    assert set(answer["peers"]) == {"alice", "bot"}


def test_metadata_of_everything(mcp: McpClient, message_ids: list[str]) -> None:
    for named in ({}, {"peer_id": "alice"}, {"session_id": "trip"}):
        assert mcp.call("get_metadata", **named)["metadata"] == {}
        mcp.call("set_metadata", metadata={"of": str(named)}, **named)
        assert mcp.call("get_metadata", **named)["metadata"] == {"of": str(named)}
    for named in ({"peer_id": "unknown"}, {"session_id": "unknown"}):
        assert "unknown not found" in mcp.refused("get_metadata", **named)
    both = {"peer_id": "alice", "session_id": "trip"}
    assert "not both" in mcp.refused("get_metadata", **both)
    assert "not both" in mcp.refused("set_metadata", metadata={}, **both)


def test_search(mcp: McpClient, message_ids: list[str]) -> None:
    for named in ({}, {"peer_id": "alice"}, {"session_id": "trip"}):
        hits = mcp.call("search", query="Ghent", **named)["messages"]
        assert hits[0]["content"] == "I live in Ghent."
    assert mcp.call("search", query="Ghent", session_id="other")["messages"] == []


def test_peers(mcp: McpClient, message_ids: list[str]) -> None:
    created = mcp.call("create_peer", peer_id="carol", metadata={"name": "Carol"})
    assert created["metadata"] == {"name": "Carol"}
    assert ids(mcp.call("list_peers")["peers"])[0] == "carol"
    assert mcp.call("get_peer_card") == {"peer_card": None}
    mcp.call("set_peer_card", peer_card=["Lives in Ghent"])
    assert mcp.call("get_peer_card", peer_id="alice") == {"peer_card": ["Lives in Ghent"]}
    assert mcp.call("get_peer_context")["card"] == ["Lives in Ghent"]
    stated = {"content": "Alice lives in Ghent.", "observer_id": "alice", "observed_id": "alice"}
    mcp.call("create_conclusions", conclusions=[stated])
    assert "Ghent" in mcp.call("get_representation", search_query="Ghent")["representation"]
    assert "Ghent" in mcp.call("chat", query="Where does Alice live?")["answer"]
    assert "unknown" in mcp.refused("chat", query="Where?", peer_id="unknown")


def test_sessions(mcp: McpClient, message_ids: list[str]) -> None:
    answer = mcp.call("inspect_session", session_id="trip")
    assert (answer["messages"], set(answer["peers"])) == (2, {"alice", "bot"})
    answer = mcp.call("get_session_messages", session_id="trip", size=1, reverse=True)
    assert (ids(answer["messages"]), answer["total"], answer["pages"]) == ([message_ids[1]], 2, 2)
    assert answer["messages"][0]["created_at"] == "2024-01-01T00:00:00Z"
    message = mcp.call("get_session_message", session_id="trip", message_id=message_ids[0])
    assert (message["content"], message["metadata"]) == ("I live in Ghent.", {"mood": "good"})
    context = mcp.call("get_session_context", session_id="trip")
    assert ids(context["messages"]) == message_ids

    mcp.call("add_peers_to_session", session_id="trip", peers={"carol": {"observe_others": True}})
    mcp.call("remove_peers_from_session", session_id="trip", peers=["bot"])
    members = mcp.call("get_session_peers", session_id="trip")["peers"]
    assert ids(members) == ["alice", "carol"]

    copied = mcp.call("clone_session", session_id="trip", message_id=message_ids[0])
    assert mcp.call("inspect_session", session_id=copied["id"])["messages"] == 1
    assert set(ids(mcp.call("list_sessions")["sessions"])) == {"trip", copied["id"]}
    assert mcp.call("delete_session", session_id=copied["id"]) == {"done": True}
    assert ids(mcp.call("list_sessions")["sessions"]) == ["trip"]


def test_conclusions(mcp: McpClient, message_ids: list[str]) -> None:
    pair = {"observer_id": "bot", "observed_id": "alice"}
    answer = mcp.call("create_conclusions", conclusions=[{"content": "Alice is kind.", **pair}])
    assert ids(mcp.call("list_conclusions")["conclusions"]) == answer["ids"]
    assert mcp.call("list_conclusions", observer_id="alice")["total"] == 0
    hits = mcp.call("query_conclusions", query="kind", **pair)["conclusions"]
    assert ids(hits) == answer["ids"]
    assert mcp.call("query_conclusions", query="kind")["conclusions"] == []
    assert mcp.call("schedule_dream", **pair) == {"scheduled": True}
    mcp.call("delete_conclusion", conclusion_id=answer["ids"][0])
    assert mcp.call("list_conclusions")["total"] == 0
    assert mcp.call("get_queue_status")["pending"] >= 1


def test_another_workspace_is_an_argument(mcp: McpClient) -> None:
    mcp.call("create_peer", workspace_id="second", peer_id="dora")
    assert ids(mcp.call("list_peers", workspace_id="second")["peers"]) == ["dora"]
    assert mcp.call("list_peers")["peers"] == []


@pytest.mark.parametrize(
    ("tool", "arguments", "text"),
    [
        ("create_session", {"session_id": "a/b"}, "session_id: "),
        ("add_messages_to_session", {"session_id": "s", "messages": []}, "messages: List should"),
        (
            "add_messages_to_session",
            {"session_id": "s", "messages": [{"content": "x"}]},
            "messages.0.peer_id: Field required",
        ),
        (
            "add_messages_to_session",
            {
                "session_id": "s",
                "messages": [{"peer_id": "alice", "content": "x", "created_at": "then"}],
            },
            "created_at: Invalid datetime value",
        ),
        (
            "add_peers_to_session",
            {"session_id": "s", "peers": [{"observe_me": True}]},
            "peers.0.peer_id: Field required",
        ),
        ("add_peers_to_session", {"session_id": "s", "peers": {"alice": 1}}, "peers.0: "),
        ("get_peer_card", {"target_peer_id": ""}, "target_peer_id: String should have"),
        ("set_peer_card", {"peer_card": ["x" * 501]}, "peer_card: String should have at most 500"),
        ("chat", {"query": "x", "reasoning_level": "huge"}, "reasoning_level: Input should be"),
        (
            "create_conclusions",
            {"conclusions": [{"content": "x", "observer_id": "no", "observed_id": "no"}]},
            "no",
        ),
        ("delete_session", {"session_id": "unknown"}, "unknown not found"),
    ],
)
def test_a_wrong_argument_is_named(
    mcp: McpClient, tool: str, arguments: dict[str, Any], text: str
) -> None:
    mcp.call("create_workspace")
    assert text in mcp.refused(tool, **arguments)
