"""Every tool of `/mcp` with every kind of key. What is expected is written out here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from api.test_auth_matrix import (
    HEADERS,
    IN_A_SESSION,
    KEYS,
    OF_THE_WORKSPACE,
    A,
    M,
    P,
    S,
    W,
    which_keys,
)
from memservice.services.auth import policy
from memservice.spi.schema import TABLES
from support.api.auth_client import AuthClient, PopulatedIds, populate, signed
from support.api.mcp_client import McpClient

pytestmark = pytest.mark.slow

OF_A_SESSION = {name for name in IN_A_SESSION if name not in W}
"""Keys of a session of the workspace, of this one or another: they use their own session."""


@dataclass(frozen=True)
class Row:
    """A call that an admin may make, and with which other keys it may be made."""

    tool: str
    allowed: set[str]
    arguments: dict[str, Any] = field(default_factory=dict)


IN_ROOM = {"session": "room"}
ROOM = {"session_id": "room"}
SAID = {"messages": [{"peer_id": "alice", "content": "hello"}]}
STATED = {"content": "likes tea", "observer_id": "alice", "observed_id": "alice"}
TABLE = {
    "remember": Row("remember", P | OF_A_SESSION, {"text": "Alice likes tea."}),
    "remember in a session": Row(
        "remember", (W | M) - {"own peer", "member"}, {"text": "Alice likes tea.", **IN_ROOM}
    ),
    "recall": Row("recall", P | OF_A_SESSION, {"query": "Ulm"}),
    "recall in a session": Row("recall", (P | M) - {"member"}, {"query": "Ulm", **IN_ROOM}),
    "ask": Row("ask", P, {"question": "Where does Alice live?"}),
    "get_context": Row("get_context", P | OF_A_SESSION),
    "get_context of a session": Row("get_context", (P | M) - {"member"}, IN_ROOM),
    "get_context of a session, about itself": Row(
        "get_context", (W | M) - {"own peer"}, {**IN_ROOM, "about": "bob"}
    ),
    "about": Row("about", P),
    "list_peers": Row("list_peers", W | OF_A_SESSION),
    "list_sessions": Row("list_sessions", P),
    "forget": Row("forget", W, {"id": "{conclusion}", "reason": "It is wrong."}),
    "status": Row("status", OF_THE_WORKSPACE),
    # one for each operation of the API
    "list_workspaces": Row("list_workspaces", A),
    "create_workspace": Row("create_workspace", OF_THE_WORKSPACE),
    "inspect_workspace": Row("inspect_workspace", W),
    "search": Row("search", W, {"query": "Ulm"}),
    "search of a peer": Row("search", P, {"query": "Ulm", "peer_id": "alice"}),
    "search in a session": Row("search", M, {"query": "Ulm", **ROOM}),
    "get_metadata": Row("get_metadata", W),
    "get_metadata of a peer": Row("get_metadata", W, {"peer_id": "alice"}),
    "get_metadata of a session": Row("get_metadata", W, ROOM),
    "set_metadata": Row("set_metadata", W, {"metadata": {}}),
    "set_metadata of a peer": Row("set_metadata", P, {"metadata": {}, "peer_id": "alice"}),
    "set_metadata of a session": Row("set_metadata", S, {"metadata": {}, **ROOM}),
    "create_peer": Row("create_peer", P | IN_A_SESSION, {"peer_id": "alice"}),
    "chat": Row("chat", P, {"query": "Where does Alice live?"}),
    "get_peer_card": Row("get_peer_card", P),
    "set_peer_card": Row("set_peer_card", P, {"peer_card": ["Lives in Ulm"]}),
    "get_peer_context": Row("get_peer_context", P),
    "get_representation": Row("get_representation", P),
    "create_session": Row("create_session", S | {"own peer", "member"}, ROOM),
    "delete_session": Row("delete_session", S, ROOM),
    "clone_session": Row("clone_session", S, ROOM),
    "add_peers_to_session": Row("add_peers_to_session", S, {"peers": {"alice": {}}, **ROOM}),
    "remove_peers_from_session": Row("remove_peers_from_session", S, {"peers": ["bob"], **ROOM}),
    "get_session_peers": Row("get_session_peers", M, ROOM),
    "inspect_session": Row("inspect_session", W, ROOM),
    "add_messages_to_session": Row("add_messages_to_session", S, {**SAID, **ROOM}),
    "get_session_messages": Row("get_session_messages", M, ROOM),
    "get_session_message": Row("get_session_message", M, {"message_id": "{message}", **ROOM}),
    "get_session_context": Row("get_session_context", M, ROOM),
    "list_conclusions": Row("list_conclusions", W),
    "query_conclusions": Row("query_conclusions", W, {"query": "Ulm"}),
    "create_conclusions": Row("create_conclusions", W, {"conclusions": [STATED]}),
    "delete_conclusion": Row("delete_conclusion", W, {"conclusion_id": "{conclusion}"}),
    "schedule_dream": Row("schedule_dream", W),
    "get_queue_status": Row("get_queue_status", W),
}


@pytest.fixture(scope="module")
def filled() -> Iterator[tuple[AuthClient, PopulatedIds]]:
    auth_client = AuthClient.open(MCP_TOOLS="all")
    yield auth_client, populate(auth_client)
    auth_client.close()


def contents(auth_client: AuthClient) -> list[Any]:
    with auth_client.runtime.storage.read() as tx:
        return [tx.rows.page(spec.record) for spec in TABLES]


def client_of(auth_client: AuthClient, key: str, path: str = "/mcp/acme/alice") -> McpClient:
    return McpClient(auth_client.client, path, signed(KEYS[key]))


def arguments_of(row: Row, ids: PopulatedIds) -> dict[str, Any]:
    return {
        name: (
            value.format(conclusion=ids.conclusion, message=ids.message)
            if isinstance(value, str)
            else value
        )
        for name, value in row.arguments.items()
    }


@pytest.mark.slow
def test_the_table_has_every_tool(filled: tuple[AuthClient, PopulatedIds]) -> None:
    auth_client, _ = filled
    listed = client_of(auth_client, "admin").ask("tools/list")["result"]["tools"]
    assert {tool["name"] for tool in listed} == {row.tool for row in TABLE.values()}


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLE)
@which_keys
def test_allowed_keys_may_call_a_tool(
    filled: tuple[AuthClient, PopulatedIds], name: str, keys: set[str], subtests: pytest.Subtests
) -> None:
    auth_client, ids = filled
    row = TABLE[name]
    for key in keys & row.allowed:
        with subtests.test(key=key), auth_client.undone():
            client_of(auth_client, key).call(row.tool, **arguments_of(row, ids))


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLE)
@which_keys
def test_other_keys_are_refused_and_change_nothing(
    filled: tuple[AuthClient, PopulatedIds], name: str, keys: set[str], subtests: pytest.Subtests
) -> None:
    auth_client, ids = filled
    row = TABLE[name]
    before = contents(auth_client)
    for key in keys - row.allowed:
        with subtests.test(key=key):
            refusal = client_of(auth_client, key).refused(row.tool, **arguments_of(row, ids))
            assert refusal in REFUSALS
    assert contents(auth_client) == before


REFUSALS = {
    policy.NOT_PERMISSIONED,
    policy.OTHER_RESOURCE,
    policy.ADMIN_ONLY,
    "session: The key of a peer stores outside of sessions only: leave session out",
}


@pytest.mark.slow
def test_no_tool_reaches_another_workspace_by_its_argument(
    filled: tuple[AuthClient, PopulatedIds], subtests: pytest.Subtests
) -> None:
    auth_client, ids = filled
    before = contents(auth_client)
    listed = client_of(auth_client, "admin").ask("tools/list")["result"]["tools"]
    with_argument = {
        tool["name"] for tool in listed if "workspace_id" in tool["inputSchema"]["properties"]
    }
    assert len(with_argument) == 30
    for name, row in TABLE.items():
        if row.tool not in with_argument:
            continue
        arguments = {**arguments_of(row, ids), "workspace_id": "other"}
        for key in ("workspace", "own peer", "own session"):
            with subtests.test(name=name, key=key):
                refusal = client_of(auth_client, key).refused(row.tool, **arguments)
                assert refusal in REFUSALS
    assert contents(auth_client) == before


@pytest.mark.parametrize(
    ("uri", "allowed"),
    [("memory://acme/peers/alice/card", P), ("memory://acme/sessions/room", M)],
)
def test_resources_need_the_same_keys(
    filled: tuple[AuthClient, PopulatedIds], uri: str, allowed: set[str], subtests: pytest.Subtests
) -> None:
    auth_client, _ = filled
    for key in KEYS:
        with subtests.test(key=key):
            answer = client_of(auth_client, key, "/mcp").ask("resources/read", {"uri": uri})
            if key in allowed:
                assert answer["result"]["contents"]
            else:
                assert answer["error"]["message"] == policy.NOT_PERMISSIONED


@pytest.mark.parametrize("wrong", HEADERS)
def test_missing_and_invalid_keys_are_refused(
    filled: tuple[AuthClient, PopulatedIds], wrong: str
) -> None:
    auth_client, ids = filled
    header = HEADERS[wrong]
    headers = {}
    if header is not None:
        headers["Authorization"] = header.format(
            admin=auth_client.admin, revoked=ids.revoked, revoked_foreign=ids.revoked_foreign
        )
    for method in ("initialize", "tools/list", "tools/call"):
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {}}
        assert McpClient(auth_client.client).post(body, **headers).status_code == 401


def test_a_key_names_the_workspace_and_the_peer(filled: tuple[AuthClient, PopulatedIds]) -> None:
    auth_client, _ = filled
    for key, workspace, peer in (
        ("own peer", "acme", "alice"),
        ("member", "acme", "bob"),
        ("workspace", "acme", "user"),
        ("own session", "acme", "user"),
        ("own session, own peer", "acme", "alice"),
        ("other workspace", "other", "user"),
        ("admin", "default", "user"),
    ):
        status = client_of(auth_client, key, "/mcp").call("status")
        assert (status["workspace"], status["peer"]) == (workspace, peer), key


def test_a_peers_key_needs_no_names(filled: tuple[AuthClient, PopulatedIds]) -> None:
    """It stores a message of its peer, outside any conversation."""
    auth_client, _ = filled
    with auth_client.undone():
        alice = client_of(auth_client, "own peer", "/mcp")
        answer = alice.call("remember", text="I like green tea.")
        assert answer == {"id": answer["id"], "stored_as": "message", "about": "alice"}
        memories = alice.call("recall", query="green tea")
        assert [item["id"] for item in memories["messages"]] == [answer["id"]]
        assert alice.call("recall", query="Ulm")["conclusions"][0]["about"] == "alice"
        assert "Ulm" in alice.call("ask", question="Where do I live?")["answer"]
        assert alice.call("about")["card"] == ["Lives in Ulm"]
        assert alice.call("get_context")["peer"] == "alice"
        assert "room" in [item["id"] for item in alice.call("list_sessions")["sessions"]]
        assert alice.call("status")["is_worked_in"] is None


def test_a_sessions_key_reads_and_writes_its_session_only(
    filled: tuple[AuthClient, PopulatedIds],
) -> None:
    auth_client, _ = filled
    with auth_client.undone():
        own, hall = (
            client_of(auth_client, key, "/mcp") for key in ("own session", "other session")
        )
        answer = own.call("remember", text="We meet at noon.", about="bob")
        assert answer["stored_as"] == "message"
        message = own.call("recall", query="noon")["messages"][0]
        assert (message["session"], message["peer"]) == ("room", "bob")
        assert hall.call("recall", query="noon")["messages"] == []
        assert [item["content"] for item in own.call("get_context")["messages"]] == [
            "I live in Ulm.",
            "We meet at noon.",
        ]
        assert hall.call("get_context")["messages"] == []
        peers = {item["id"] for item in own.call("list_peers")["peers"]}
        assert peers == {"alice", "bob"}


def test_a_former_member_recalls_nothing_that_was_said_later(
    filled: tuple[AuthClient, PopulatedIds],
) -> None:
    auth_client, _ = filled
    carol = client_of(auth_client, "former member", "/mcp")
    assert carol.call("recall", query="Ulm") == {"conclusions": [], "messages": []}
