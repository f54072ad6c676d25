"""Options of the published commands that the other tests do not give: whom, where, how much, at
which level."""

from __future__ import annotations

import uuid
from typing import Any

import httpx
import pytest

from support.clients.command_line import Commands, Done
from support.clients.derived import seeded
from support.clients.server import Server

pytestmark = [
    # By default, tests/e2e/test_published_client.py gives these parameters to the client that the
    # commands call.
    pytest.mark.heavy,
    pytest.mark.e2e,
    pytest.mark.client,
    pytest.mark.timeout(600),
    pytest.mark.xdist_group("served"),
]

TORTOISE = "I adopted a tortoise named Balthazar last spring."
SISTER = "My sister Clara teaches physics in Lyon."
WORK = "I work as a nurse at the hospital in Bergen."
BOATS = "I own three boats in the harbour."
CELLO = "Alice plays the cello."
TEA = "Alice drinks green tea."


@pytest.fixture(scope="module")
def talk_ids(honcho: Commands) -> list[str]:
    """Alice and bob in the session `talk`, alice alone in `work`; bob has two conclusions about
    her. Returns the messages of `talk`, in order."""
    honcho("session", "create", "talk", "--peers", "alice,bob")
    messages = [
        honcho("message", "create", text, "-p", peer, "-s", "talk")["id"]
        for peer, text in (("alice", TORTOISE), ("bob", SISTER), ("alice", BOATS))
    ]
    honcho("message", "create", WORK, "-p", "alice", "-s", "work")
    honcho("conclusion", "create", CELLO, "--observer", "bob", "--observed", "alice", "-s", "talk")
    honcho("conclusion", "create", TEA, "--observer", "bob", "--observed", "alice", "-s", "work")
    honcho.wait_for_queue()
    return messages


def column(done: Done, name: str = "content") -> list[Any]:
    assert done.code == 0, done.error_line
    return [item[name] for item in done.output]


def statements(done: Done) -> list[str]:
    """What a representation says, without the times."""
    assert done.code == 0, done.error_line
    return [
        line.split("] ", 1)[1]
        for line in done.output["representation"].splitlines()
        if line.startswith("[")
    ]


def test_options_select_the_peers_and_content_of_a_representation(
    honcho: Commands, talk_ids: list[str]
) -> None:
    whole, of_another, hits, latest, within, narrow, of_another_there, found_there, by_option = (
        honcho.several(
            ("peer", "representation", "alice"),
            ("peer", "representation", "bob", "--target", "alice"),
            (
                "peer",
                "representation",
                "alice",
                "--search-query",
                "tortoise named Balthazar",
                "--max-conclusions",
                "1",
            ),
            ("peer", "representation", "alice", "--max-conclusions", "1"),
            ("peer", "representation", "alice", "-s", "work"),
            ("session", "representation", "alice", "talk", "--max-conclusions", "1"),
            ("session", "representation", "bob", "talk", "--target", "alice"),
            (
                "session",
                "representation",
                "alice",
                "-s",
                "talk",
                "--search-query",
                "tortoise named Balthazar",
                "--max-conclusions",
                "1",
            ),
            ("peer", "representation", "-p", "alice"),
        )
    )
    assert statements(whole) == statements(by_option) == [TORTOISE, BOATS, WORK]
    assert statements(of_another) == [CELLO, TEA]
    assert statements(hits) == statements(found_there) == [TORTOISE]
    assert (statements(latest), statements(within), statements(narrow)) == ([WORK], [WORK], [BOATS])
    assert statements(of_another_there) == [CELLO]


def test_options_select_and_order_messages(honcho: Commands, talk_ids: list[str]) -> None:
    brief, of_session, last, with_ids, of_bob, context, plain, summarised = honcho.several(
        ("message", "list", "talk", "--brief"),
        ("message", "list", "-s", "talk", "--last", "2"),
        ("session", "view", "-s", "talk", "--last", "2"),
        ("session", "view", "talk", "--ids"),
        ("session", "view", "talk", "-p", "bob"),
        ("session", "context", "-s", "talk", "--tokens", "30"),
        ("session", "context", "talk", "--no-summary"),
        ("session", "context", "talk", "--summary"),
    )
    assert column(brief, "id") == talk_ids
    assert all("content" not in item and item["token_count"] > 0 for item in brief.output)
    assert column(of_session) == column(last) == [SISTER, BOATS]
    assert column(with_ids, "id") == talk_ids
    assert column(of_bob) == [SISTER]
    sizes = column(brief, "token_count")
    fitting = next(count for count in (3, 2, 1, 0) if sum(sizes[3 - count :]) <= 30)
    assert [message["id"] for message in context.output["messages"]] == talk_ids[3 - fitting :]
    for each in (plain, summarised):
        assert ([message["id"] for message in each.output["messages"]], each.output["summary"]) == (
            talk_ids,
            None,
        )


def test_an_option_leaves_out_the_summary(honcho: Commands, server: Server) -> None:
    texts = [f"On day {day} I counted {day * 7} birds at the harbour." for day in range(20)]
    workspace_id = honcho.settings["HONCHO_WORKSPACE_ID"]
    messages = [{"peer_id": "alice", "content": text} for text in texts]
    httpx.post(
        f"{server.url}/v3/workspaces/{workspace_id}/sessions/long/messages",
        json={"messages": messages},
        timeout=60,
    ).raise_for_status()
    honcho.wait_for_queue()
    with_it, without_it, shown = honcho.several(
        ("session", "context", "long", "--summary"),
        ("session", "context", "long", "--no-summary"),
        ("session", "summaries", "-s", "long"),
    )
    assert "harbour" in with_it.output["summary"]["content"]
    assert [message["content"] for message in with_it.output["messages"]] == texts[-1:], (
        "from the last summarised message on"
    )
    assert without_it.output["summary"] is None
    assert [message["content"] for message in without_it.output["messages"]] == texts
    assert shown.output["short_summary"]["content"] == with_it.output["summary"]["content"]
    assert honcho("session", "delete", "-s", "long", "--yes") == {"deleted": "long"}


def test_a_session_is_named_by_an_option_as_well(honcho: Commands, talk_ids: list[str]) -> None:
    honcho("session", "set-metadata", "-s", "talk", "--data", '{"topic": "pets"}')
    inspected, peers, hits, metadata = honcho.several(
        ("session", "inspect", "-s", "talk"),
        ("session", "peers", "-s", "talk"),
        ("session", "search", "physics", "-s", "talk", "--limit", "1"),
        ("session", "get-metadata", "-s", "talk"),
    )
    assert inspected.output["message_count"] == 3
    assert set(column(peers, "id")) == {"alice", "bob"}
    assert column(hits, "id") == talk_ids[1:2]
    assert metadata.output["metadata"] == {"topic": "pets"}


def test_a_peer_is_named_by_an_option_as_well(honcho: Commands, talk_ids: list[str]) -> None:
    assert honcho("peer", "create", "open", "--observe-me")["configuration"]["observe_me"] is True
    inspected, card, of_another, metadata, hits = honcho.several(
        ("peer", "inspect", "-p", "alice"),
        ("peer", "card", "-p", "alice"),
        ("peer", "card", "bob", "--target", "alice"),
        ("peer", "get-metadata", "-p", "alice"),
        ("peer", "search", "tortoise boats nurse", "-p", "alice", "--limit", "2"),
    )
    assert (inspected.output["session_count"], inspected.output["conclusion_count"]) == (2, 3)
    assert (card.output["card"], of_another.output["card"], metadata.output["metadata"]) == (
        None,
        None,
        {},
    )
    assert len(column(hits)) == 2


def test_options_select_the_peer_and_session_of_a_question(
    honcho: Commands, talk_ids: list[str]
) -> None:
    honcho("scope", "create", "office", "--sessions", "work")
    honcho.until(
        {"pending": 0, "completed": 1, "failed": 0}, "scope", "status", "office", part="summary"
    )
    of_another, own, in_scope, outside, everywhere, there, deep = honcho.several(
        ("peer", "chat", "Who plays the cello?", "-p", "bob", "--target", "alice", "--evidence"),
        ("peer", "chat", "Who plays the cello?", "-p", "bob", "--evidence"),
        ("peer", "chat", "Where do I work as a nurse?", "-p", "alice", "--scope", "office"),
        ("peer", "chat", "What is the name of the tortoise?", "-p", "alice", "--scope", "office"),
        ("workspace", "chat", "What is the name of the tortoise?", "--evidence"),
        ("workspace", "chat", "Who teaches physics in Lyon?", "-s", "work", "--evidence"),
        ("workspace", "chat", "What is the name of the tortoise?", "-r", "max"),
    )
    assert CELLO in [x["content"] for x in of_another.output["evidence"]["conclusions"]]
    assert CELLO not in [x["content"] for x in own.output["evidence"]["conclusions"]]
    assert "Bergen" in in_scope.output["response"]
    assert "Balthazar" not in (outside.output["response"] or "")
    assert TORTOISE in [x["content"] for x in everywhere.output["evidence"]["conclusions"]]
    assert [
        session["session_id"] for session in there.output["evidence"]["messages"]["sessions"]
    ] == ["work"]
    assert "Balthazar" in deep.output["response"]


def test_options_filter_the_queue_status(honcho: Commands, talk_ids: list[str]) -> None:
    fresh = ("-w", f"w-{uuid.uuid4().hex[:12]}")
    for peer, session in (("alice", "one"), ("bob", "one"), ("alice", "two")):
        honcho("message", "create", TORTOISE, "-p", peer, "-s", session, *fresh)
    honcho.wait_for_queue(*fresh)
    whole, of_session, of_observer, of_sender = honcho.several(
        ("workspace", "queue-status", *fresh),
        ("workspace", "queue-status", "-s", "one", *fresh),
        ("workspace", "queue-status", "--observer", "bob", *fresh),
        ("workspace", "queue-status", "--sender", "alice", *fresh),
    )
    assert [
        done.output["total_work_units"] for done in (whole, of_session, of_observer, of_sender)
    ] == [3, 2, 1, 2]


def test_options_filter_conclusions_by_level_and_source(honcho: Commands, server: Server) -> None:
    seed = seeded(server)
    workspace_options = ("-w", seed["workspace"])
    newest, pattern, pair, of_nobody, levels = honcho.several(
        ("conclusion", "derived", seed["said"][0], "--limit", "2", *workspace_options),
        (
            "conclusion",
            "search",
            "animals goats",
            "-p",
            "alice",
            "--level",
            "inductive",
            *workspace_options,
        ),
        (
            "conclusion",
            "search",
            "animals goats",
            "--observer",
            "alice",
            "--observed",
            "alice",
            "--top-k",
            "50",
            *workspace_options,
        ),
        (
            "conclusion",
            "search",
            "animals",
            "--observer",
            "alice",
            "--observed",
            "bob",
            *workspace_options,
        ),
        ("conclusion", "list", "-p", "alice", "--level", "contradiction", *workspace_options),
    )
    assert column(newest, "id") == [seed["conflict"], seed["derived"][-1]]
    assert column(pattern, "id") == [seed["pattern"]]
    assert set(column(pair, "level")) == {"explicit", "deductive", "inductive", "contradiction"}
    assert of_nobody.output == []
    assert column(levels, "id") == [seed["conflict"]]
