"""The published commands, unmodified, against a running server: what they print, and how they end.
By default, a few: the commands call the client of tests/e2e/test_published_client.py."""

from __future__ import annotations

import json
import subprocess
import uuid
from pathlib import Path
from typing import Any

import pytest

from support.clients.command_line import Commands, Done
from support.clients.derived import Known, derive
from support.clients.server import Server

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.client,
    pytest.mark.timeout(600),
    pytest.mark.xdist_group("served"),
]

TORTOISE = "I adopted a tortoise named Balthazar last spring."
WORK = "I work as a nurse at the hospital in Bergen."
SISTER = "My sister Clara teaches physics in Lyon."


def ids(done: Done) -> list[str]:
    return [item["id"] for item in done.output]


def column(done: Done, name: str = "content") -> list[Any]:
    assert done.code == 0, done.error_line
    return [item[name] for item in done.output]


@pytest.fixture(scope="module")
def talk(honcho: Commands) -> dict[str, Any]:
    """A conversation in the session `talk`, everything learnt from it; the messages' ids in
    order."""
    assert honcho(
        "session", "create", "talk", "--peers", "alice,bob", "--metadata", '{"topic": "tea"}'
    ) == {
        "session_id": "talk",
        "metadata": {"topic": "tea"},
        "peers": ["alice", "bob"],
    }
    stored = [
        honcho(
            "message", "create", text, "-p", peer, "-s", "talk", "--metadata", '{"from": "shell"}'
        )
        for peer, text in (("alice", TORTOISE), ("bob", SISTER), ("alice", WORK))
    ]
    assert [(message["peer_id"], message["content"]) for message in stored] == [
        ("alice", TORTOISE),
        ("bob", SISTER),
        ("alice", WORK),
    ]
    honcho.wait_for_queue()
    return {"messages": [message["id"] for message in stored]}


@pytest.mark.heavy
def test_the_executable_runs_as_a_process(honcho: Commands, commands: Path) -> None:
    """What the others leave out: that the commands start as a process of their own, and need
    nothing but their settings."""
    workspace_id = f"w-{uuid.uuid4().hex[:12]}"
    started = [str(commands.parent / "honcho"), "workspace", "create", workspace_id]
    result = subprocess.run(
        started, env=honcho.settings, capture_output=True, text=True, timeout=60, check=True
    )
    assert json.loads(result.stdout) == {"workspace_id": workspace_id}
    assert (
        "0.3.0"
        in subprocess.run(
            [started[0], "--version"],
            env=honcho.settings,
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        ).stdout
    )


@pytest.mark.heavy
def test_commands_of_workspaces(honcho: Commands) -> None:
    name = f"w-{uuid.uuid4().hex[:12]}"
    assert honcho("workspace", "create", name, "--metadata", '{"plan": "gold"}') == {
        "workspace_id": name,
        "metadata": {"plan": "gold"},
    }
    honcho("session", "create", "only", "-w", name)
    inspected, listed, dry = honcho.several(
        ("workspace", "inspect", name),
        ("workspace", "list"),
        ("workspace", "delete", name, "--dry-run", "--cascade"),
    )
    assert (
        inspected.output["metadata"],
        inspected.output["peer_count"],
        inspected.output["session_count"],
    ) == (
        {"plan": "gold"},
        0,
        1,
    )
    assert name in ids(listed)
    assert dry.output["session_ids"] == ["only"]
    refused = honcho.run("workspace", "delete", name, "--yes")
    assert (refused.code, refused.error["details"]["status"]) == (1, 409)
    deleted = honcho("workspace", "delete", name, "--yes", "--cascade")
    assert deleted == {
        "deleted_workspace": name,
        "status": "accepted",
        "deleted_sessions": ["only"],
    }
    assert name not in [item["id"] for item in honcho("workspace", "list")]


def test_commands_of_messages_keep_the_order(honcho: Commands, talk: dict[str, Any]) -> None:
    messages = talk["messages"]
    listed, turned, last, of_bob, one, viewed, newest, paged = honcho.several(
        ("message", "list", "talk"),
        ("message", "list", "talk", "--reverse"),
        ("message", "list", "talk", "--last", "1"),
        ("message", "list", "talk", "-p", "bob"),
        ("message", "get", messages[1], "-s", "talk"),
        ("session", "view", "talk", "--all"),
        ("session", "view", "talk", "--reverse"),
        ("session", "view", "talk", "--page", "2", "--size", "2"),
    )
    assert ids(listed) == messages
    assert ids(turned) == messages[::-1]
    assert ids(last) == messages[2:]
    assert ids(of_bob) == messages[1:2]
    assert (one.output["content"], one.output["metadata"]) == (SISTER, {"from": "shell"})
    assert column(viewed) == [TORTOISE, SISTER, WORK]
    assert ids(newest) == messages[::-1]
    assert ids(paged) == messages[2:]


@pytest.mark.heavy
def test_commands_of_sessions_and_peers(honcho: Commands, talk: dict[str, Any]) -> None:
    inspected, context, summaries, members, metadata, peer, representation, narrow, of_carol = (
        honcho.several(
            ("session", "inspect", "talk"),
            ("session", "context", "talk", "--tokens", "500"),
            ("session", "summaries", "talk"),
            ("session", "peers", "talk"),
            ("session", "get-metadata", "talk"),
            ("peer", "inspect", "alice"),
            ("peer", "representation", "alice"),
            ("session", "representation", "bob", "talk", "--max-conclusions", "1"),
            ("session", "list", "-p", "carol"),
        )
    )
    assert inspected.output["message_count"] == 3
    assert [message["id"] for message in context.output["messages"]] == talk["messages"]
    assert (summaries.output["short_summary"], summaries.output["long_summary"]) == (None, None)
    assert set(column(members, "id")) == {"alice", "bob"}
    assert metadata.output["metadata"] == {"topic": "tea"}
    assert (peer.output["session_count"], peer.output["conclusion_count"], peer.output["card"]) == (
        1,
        2,
        None,
    )
    assert [conclusion["content"] for conclusion in peer.output["recent_conclusions"]] == [
        WORK,
        TORTOISE,
    ]
    text = representation.output["representation"]
    assert text.index(TORTOISE) < text.index(WORK)
    assert SISTER in narrow.output["representation"]
    assert of_carol.output == []


@pytest.mark.heavy
def test_peers_and_sessions_are_changed(honcho: Commands) -> None:
    workspace_options = ("-w", f"w-{uuid.uuid4().hex[:12]}")
    peer = honcho(
        "peer", "create", "shy", "--no-observe-me", "--metadata", '{"n": 1}', *workspace_options
    )
    assert (peer["metadata"], peer["configuration"]["observe_me"]) == ({"n": 1}, False)
    honcho("peer", "set-metadata", '{"n": 2}', "-p", "shy", *workspace_options)
    assert honcho("peer", "get-metadata", "shy", *workspace_options)["metadata"] == {"n": 2}
    honcho("session", "add-peers", "meeting", "shy", "bob", *workspace_options)
    honcho("session", "set-metadata", "meeting", "--data", '{"room": 7}', *workspace_options)
    honcho("session", "remove-peers", "meeting", "bob", *workspace_options)
    peers, sessions, members, metadata, card = honcho.several(
        ("peer", "list", *workspace_options),
        ("session", "list", *workspace_options),
        ("session", "peers", "meeting", *workspace_options),
        ("session", "get-metadata", "meeting", *workspace_options),
        ("peer", "card", "shy", *workspace_options),
    )
    assert ids(peers) == ["shy", "bob"]
    assert (ids(sessions), ids(members)) == (["meeting"], ["shy"])
    assert (metadata.output["metadata"], card.output["card"]) == ({"room": 7}, None)
    assert honcho("session", "delete", "meeting", "--yes", *workspace_options) == {
        "deleted": "meeting"
    }
    assert honcho("session", "list", *workspace_options) == []


@pytest.mark.heavy
def test_commands_of_search(honcho: Commands, talk: dict[str, Any]) -> None:
    everywhere, of_peer, of_session, none = honcho.several(
        ("workspace", "search", "who teaches physics", "--limit", "1"),
        ("peer", "search", "tortoise physics", "-p", "alice"),
        ("session", "search", "nurse hospital", "talk", "--limit", "1"),
        ("peer", "search", "tortoise", "-p", "stranger"),
    )
    assert ids(everywhere) == talk["messages"][1:2]
    assert ids(of_peer)[0] == talk["messages"][0]
    assert ids(of_session) == talk["messages"][2:]
    assert none.output == []


@pytest.mark.heavy
def test_commands_of_conclusions(honcho: Commands, talk: dict[str, Any]) -> None:
    conclusion = honcho(
        "conclusion",
        "create",
        "Bob plays the cello.",
        "--observer",
        "alice",
        "--observed",
        "bob",
        "-s",
        "talk",
    )
    assert (conclusion["observer_id"], conclusion["observed_id"], conclusion["session_id"]) == (
        "alice",
        "bob",
        "talk",
    )
    listed, of_bob, limited, derived, deduced, hits, by_id, above, from_it = honcho.several(
        ("conclusion", "list", "-p", "alice"),
        ("conclusion", "list", "--observer", "alice", "--observed", "bob"),
        ("conclusion", "list", "-p", "alice", "--limit", "1"),
        ("conclusion", "derived", conclusion["id"]),
        ("conclusion", "list", "-p", "alice", "--level", "deductive"),
        ("conclusion", "search", "a tortoise named Balthazar", "-p", "alice", "--top-k", "1"),
        ("conclusion", "get", conclusion["id"], "x" * 21),
        ("conclusion", "list", "-p", "alice", "--limit", "101"),
        (
            "conclusion",
            "list",
            "-p",
            "alice",
            "--derived-from",
            conclusion["id"],
            "--level",
            "inductive",
        ),
    )
    assert column(listed) == [WORK, TORTOISE]
    assert {(x["level"], tuple(x["source_ids"]), x["times_derived"]) for x in listed.output} == {
        ("explicit", (), 1)
    }
    assert column(of_bob) == ["Bob plays the cello."]
    assert column(limited) == [WORK]
    assert derived.output == deduced.output == from_it.output == []
    assert column(hits) == [TORTOISE]
    assert (ids(by_id), by_id.error["code"]) == ([conclusion["id"]], "MISSING_CONCLUSIONS")
    assert (above.code, above.error["details"]["status"]) == (1, 422)
    assert "less than or equal to 100" in above.error["message"]
    assert honcho(
        "conclusion",
        "delete",
        conclusion["id"],
        "--observer",
        "alice",
        "--observed",
        "bob",
        "--yes",
    ) == {"deleted": conclusion["id"]}
    again = honcho.run(
        "conclusion",
        "delete",
        conclusion["id"],
        "--observer",
        "alice",
        "--observed",
        "bob",
        "--yes",
    )
    assert (again.code, again.error["code"]) == (1, "CONCLUSION_NOT_FOUND")


@pytest.mark.heavy
def test_the_provenance_of_conclusions_is_shown(honcho: Commands, server: Server) -> None:
    workspace = f"w-{uuid.uuid4().hex[:12]}"
    workspace_options = ("-w", workspace)
    honcho("peer", "create", "alice", *workspace_options)
    first, second = (
        honcho("conclusion", "create", text, "-p", "alice", *workspace_options)["id"]
        for text in ("Alice has goats.", "Alice has bees.")
    )
    animals = derive(server, workspace, Known("Alice keeps animals.", [first, second]))
    patience = derive(server, workspace, Known("Alice is patient.", [animals]))
    from_first, from_both, level, walked, listed = honcho.several(
        ("conclusion", "derived", first, *workspace_options),
        (
            "conclusion",
            "list",
            "-p",
            "alice",
            "--derived-from",
            second,
            "--level",
            "deductive",
            *workspace_options,
        ),
        ("conclusion", "list", "-p", "alice", "--level", "deductive", *workspace_options),
        (
            "conclusion",
            "get",
            *honcho("conclusion", "get", animals, *workspace_options)[0]["source_ids"],
            *workspace_options,
        ),
        ("conclusion", "derived", animals, *workspace_options),
    )
    assert ids(from_first) == ids(from_both) == [animals]
    assert from_first.output[0]["source_ids"] == [first, second]
    assert set(ids(level)) == {animals, patience}
    assert set(ids(walked)) == {first, second}
    assert column(listed) == ["Alice is patient."]
    assert honcho("conclusion", "derived", patience, *workspace_options) == []
    honcho("conclusion", "delete", first, "-p", "alice", "--yes", *workspace_options)
    assert honcho("conclusion", "get", animals, *workspace_options)[0]["source_ids"] == [
        first,
        second,
    ], "it still says what it rested on"


@pytest.mark.heavy
def test_commands_of_chat(honcho: Commands, talk: dict[str, Any]) -> None:
    answer, everywhere, read, nowhere, unscoped = honcho.several(
        ("peer", "chat", "What is the name of the tortoise?", "-p", "alice", "-r", "high"),
        ("workspace", "chat", "Who teaches physics in Lyon?"),
        (
            "peer",
            "chat",
            "Where do I work as a nurse?",
            "-p",
            "alice",
            "--sessions",
            "talk",
            "--evidence",
        ),
        ("peer", "chat", "Who?", "-p", "alice", "-s", "nowhere"),
        ("workspace", "chat", "Who?", "--scope", "typo"),
    )
    assert "Balthazar" in answer.output["response"]
    assert "Clara" in everywhere.output["response"]
    assert "Bergen" in read.output["response"]
    assert WORK in [x["content"] for x in read.output["evidence"]["conclusions"]]
    assert read.output["evidence"]["messages"]["sessions"] in (
        [],
        [{"session_id": "talk", "count": read.output["evidence"]["messages"]["total"]}],
    )
    assert (nowhere.code, nowhere.error["code"]) == (1, "NOT_FOUND")
    assert "nowhere" in nowhere.error["message"]
    assert "typo" in unscoped.error["message"]


@pytest.mark.heavy
def test_commands_of_scopes(honcho: Commands, talk: dict[str, Any]) -> None:
    scope = honcho(
        "scope", "create", "private", "--sessions", "talk", "--metadata", '{"colour": "green"}'
    )
    assert (scope["id"], scope["metadata"], scope["added_sessions"]) == (
        "private",
        {"colour": "green"},
        ["talk"],
    )
    honcho.until(
        {"pending": 0, "completed": 1, "failed": 0}, "scope", "status", "private", part="summary"
    )
    honcho("session", "create", "other")
    honcho("scope", "add-sessions", "private", "other")
    listed, inspected, sessions, answer, typo, missing = honcho.several(
        ("scope", "list"),
        ("scope", "inspect", "private"),
        ("scope", "sessions", "private"),
        ("workspace", "chat", "Who teaches physics in Lyon?", "--scope", "private"),
        ("scope", "inspect", "typo"),
        ("scope", "add-sessions", "private", "nowhere"),
    )
    assert ids(listed) == ["private"]
    assert (inspected.output["session_count"], inspected.output["sessions"]) == (
        2,
        ["talk", "other"],
    )
    assert ids(sessions) == ["talk", "other"]
    assert "Clara" in answer.output["response"]
    assert (typo.code, typo.error["code"]) == (1, "SCOPE_NOT_FOUND")
    assert missing.code == 1
    assert honcho("scope", "remove-session", "private", "other") == {
        "scope": "private",
        "removed_session": "other",
    }
    assert [item["id"] for item in honcho("scope", "sessions", "private")] == ["talk"]


def test_the_doctor_reports_no_problem(honcho: Commands, talk: dict[str, Any]) -> None:
    report = honcho("doctor", HONCHO_PEER_ID="alice")
    assert [check["check"] for check in report["checks"]] == [
        "Config file",
        "Credentials configured",
        "API connectivity",
        "Workspace reachable",
        "Queue health",
        "Peer exists",
    ]
    assert report["passed"] == report["total"] == 6, report
    assert report["checks"][4]["detail"].endswith("0 pending")


@pytest.mark.heavy
def test_wrong_arguments_exit_with_1(honcho: Commands, talk: dict[str, Any]) -> None:
    missing, name, dots, card, none = honcho.several(
        ("message", "get", "x" * 21, "-s", "talk"),
        ("peer", "create", "two words"),
        ("session", "create", "a.b.é"),
        ("conclusion", "create", "x", "--observer", "alice", "--observed", "nobody"),
        ("message", "create", "x" * 25_001, "-p", "alice", "-s", "talk"),
    )
    assert (missing.code, missing.error["code"]) == (1, "MESSAGE_NOT_FOUND")
    assert (card.code, card.error["code"]) == (1, "CONCLUSION_NOT_FOUND")
    for refused in (name, dots, none):
        assert (refused.code, refused.error["details"]["status"]) == (1, 422)
    unreachable = honcho.run("workspace", "list", HONCHO_BASE_URL="http://127.0.0.1:1")
    assert unreachable.code == 1
