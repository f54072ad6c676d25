"""What a reasoner is given for a question, and what becomes of its answer."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from api.conftest import Api
from memservice.spi.reasoner import AnswerRequest
from support.api.answering_reasoner import AnsweringReasoner, talking
from support.stores.stores import sqlite_store_at

SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


@pytest.fixture
def api_and_reasoner(
    local_storage_name: str, tmp_path: Path
) -> Iterator[tuple[Api, AnsweringReasoner]]:
    uri = "memory://" if local_storage_name == "memory" else sqlite_store_at(tmp_path / "t.db")
    with talking(tmp_path, uri) as (api, reasoner):
        api.say("s", ("alice", "I keep bees."), ("bob", "Bees sting!"))
        api.peer("carol")
        yield api, reasoner


def ask(api: Api, query: str = "bees", path: str = "/peers/alice/chat", **body: Any) -> Any:
    return api.ok(api.post(path, {"query": query, **body}))


@pytest.mark.slow
def test_the_reasoner_gets_the_request_and_its_evidence(
    api_and_reasoner: tuple[Api, AnsweringReasoner],
) -> None:
    api, reasoner = api_and_reasoner
    api.conclude("alice", "alice", "Alice keeps bees.", session="s")
    assert ask(api, "Who has\0 bees?", reasoning_level="high", response_format=None) == {
        "content": "Yes."
    }
    request = reasoner.last
    assert (request.question, request.subject, request.level, request.response_format) == (
        "Who has bees?",
        "alice",
        "high",
        None,
    )
    assert [
        (item.kind, item.content, item.about, item.author, item.observer, item.session)
        for item in request.evidence
    ] == [
        ("conclusion", "Alice keeps bees.", "alice", None, "alice", "s"),
        ("message", "I keep bees.", None, "alice", None, "s"),
        ("message", "Bees sting!", None, "bob", None, "s"),
    ]
    assert (request.recent, request.cards, request.instructions) == ([], {}, None)
    ask(api, path="/chat")
    assert reasoner.last.subject is None
    ask(api, target="bob")
    assert reasoner.last.subject == "bob"


def test_cards_of_asker_and_subject_are_passed(
    api_and_reasoner: tuple[Api, AnsweringReasoner],
) -> None:
    api, reasoner = api_and_reasoner
    api.put("/peers/alice/card", {"peer_card": ["about herself"]})
    api.put("/peers/alice/card", {"peer_card": ["about bob"]}, query_string={"target": "bob"})
    api.put("/peers/bob/card", {"peer_card": ["bob's own"]})
    ask(api)
    assert reasoner.last.cards == {"alice": ["about herself"]}
    ask(api, target="bob")
    assert reasoner.last.cards == {"alice": ["about herself"], "bob": ["about bob"]}
    ask(api, path="/chat")
    assert reasoner.last.cards == {}


def test_a_scope_uses_its_own_card_only(api_and_reasoner: tuple[Api, AnsweringReasoner]) -> None:
    """A peer's own card may hold what was said outside the scope. A list of scopes is an allowlist,
    which leaves cards as they are."""
    api, reasoner = api_and_reasoner
    api.ok(api.post("/scopes", {"id": "team"}), 201)
    api.put("/peers/alice/card", {"peer_card": ["about herself"]})
    api.put("/peers/alice/card", {"peer_card": ["about bob"]}, query_string={"target": "bob"})
    api.put(
        "/peers/scope.team/card", {"peer_card": ["bob in the team"]}, query_string={"target": "bob"}
    )
    ask(api, scope="team")
    assert reasoner.last.cards == {}
    ask(api, target="bob", scope="team")
    assert reasoner.last.cards == {"bob": ["bob in the team"]}
    ask(api, scope=["team"])
    assert reasoner.last.cards == {"alice": ["about herself"]}


def test_the_latest_messages_of_a_session_are_passed(tmp_path: Path) -> None:
    with talking(tmp_path, DIALECTIC_SESSION_HISTORY_MAX_TOKENS="12") as (api, reasoner):
        messages = api.say("s", *[("alice", f"Bee number {number}.") for number in range(9)])
        api.say("t", ("alice", "Elsewhere."))
        assert [message["token_count"] for message in messages] == [4] * 9 or sum(
            m["token_count"] for m in messages[-2:]
        ) <= 12
        ask(api, session_id="s")
        recent = [(item.author, item.content, item.new) for item in reasoner.last.recent]
        fitting = 12 // messages[0]["token_count"]
        assert recent == [
            ("alice", f"Bee number {number}.", False) for number in range(9 - fitting, 9)
        ]
        ask(api)
        assert reasoner.last.recent == []


@pytest.mark.slow
def test_no_latest_messages_are_passed_if_the_setting_is_zero(tmp_path: Path) -> None:
    with talking(tmp_path, DIALECTIC_SESSION_HISTORY_MAX_TOKENS="0") as (api, reasoner):
        api.say("s", ("alice", "Bees."))
        ask(api, session_id="s")
        assert reasoner.last.recent == []


def test_instructions_of_all_levels_are_passed(
    api_and_reasoner: tuple[Api, AnsweringReasoner],
) -> None:
    api, reasoner = api_and_reasoner
    api.put(
        "",
        {
            "configuration": {
                "custom_instructions": "All.",
                "dialectic": {"custom_instructions": "Workspace."},
            }
        },
    )
    api.put("/sessions/s", {"configuration": {"dialectic": {"custom_instructions": "Session."}}})
    for path in ("/peers/alice/chat", "/chat"):
        ask(api, path=path)
        assert reasoner.last.instructions == "All.\n\nWorkspace."
        ask(api, path=path, session_id="s")
        assert reasoner.last.instructions == "All.\n\nSession."


@pytest.mark.slow
def test_an_empty_answer_is_null(api_and_reasoner: tuple[Api, AnsweringReasoner]) -> None:
    api, reasoner = api_and_reasoner
    for pieces in ([], [""], ["", " \n"]):
        reasoner.say = lambda request, pieces=pieces: pieces  # type: ignore[misc]
        answer = ask(api, include_evidence=True)
        assert answer["content"] is None
        assert len(answer["evidence"]["messages"]) == 2
        assert ask(api, response_format=SCHEMA)["content"] is None


def test_no_connection_is_open_while_the_reasoner_works(
    api_and_reasoner: tuple[Api, AnsweringReasoner],
) -> None:
    api, reasoner = api_and_reasoner

    def write(request: AnswerRequest) -> Iterable[str]:
        # A write inside another transaction of this thread is an error, and so would be a lock that
        # the question still holds.
        yield api.runtime.storage.write(
            lambda tx: str(tx.workspaces.by_slug("w", lock=True) is not None)
        )

    reasoner.say = write
    for path in ("/peers/alice/chat", "/chat"):
        assert ask(api, path=path) == {"content": "True"}
        assert '"content": "True"' in api.post(path, {"query": "x", "stream": True}).text


@pytest.mark.slow
def test_a_response_format_is_passed_on_and_validated(
    api_and_reasoner: tuple[Api, AnsweringReasoner], caplog: pytest.LogCaptureFixture
) -> None:
    api, reasoner = api_and_reasoner
    reasoner.say = lambda request: ['{"na', 'me": "Al"}']
    assert json.loads(ask(api, response_format=SCHEMA)["content"]) == {"name": "Al"}
    assert reasoner.last.response_format == SCHEMA
    reasoner.say = lambda request: ['{"nom": "Al"}']
    answer = api.post("/peers/alice/chat", {"query": "x", "response_format": SCHEMA})
    assert (answer.status_code, answer.get_json()) == (
        500,
        {"detail": "An unexpected error occurred"},
    )
    assert "InvalidAnswer" in caplog.text


def test_a_failing_reasoner_is_an_error_that_quotes_nothing(
    api_and_reasoner: tuple[Api, AnsweringReasoner], caplog: pytest.LogCaptureFixture
) -> None:
    api, reasoner = api_and_reasoner

    def fail(request: AnswerRequest) -> Iterable[str]:
        yield "Half of"
        raise ConnectionError(request.question.upper())

    reasoner.say = fail
    with caplog.at_level(logging.INFO):
        answer = api.post("/peers/alice/chat", {"query": "bees"})
    assert (answer.status_code, answer.get_json()) == (
        500,
        {"detail": "An unexpected error occurred"},
    )
    assert "ConnectionError" in caplog.text
    assert "BEES" not in caplog.text


@pytest.mark.slow
def test_a_model_also_gets_weak_matches(tmp_path: Path) -> None:
    """A model can decide what belongs to the question; an answer without a model cannot."""
    from memservice.spi.capabilities import Capability

    for capabilities, most in (((), 0), ((Capability.COSTLY,), 1)):
        with talking(tmp_path) as (api, reasoner):
            reasoner.capabilities = frozenset(capabilities)
            api.peer("alice")
            api.conclude("alice", "alice", "Alice keeps bees.")
            ask(api, "Which planet is the biggest?")
            assert len(reasoner.last.evidence) == most
