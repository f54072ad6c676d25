"""Chat over HTTP with a language model: what it may look at, evidence, streams over a real socket,
failures, and what operators hear."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from api.conftest import Api
from api.test_chat_streaming import PATHS, PATIENCE, next_event, served, stream
from memservice.app import create_app
from memservice.compose import open_runtime
from memservice.plugins import load_plugins
from memservice.reasoning.client import BUFFERED_CHARS
from memservice.settings import load_settings
from memservice.spi.llm import Completion, CompletionRequest, ModelFailure
from memservice.telemetry.events import Event
from support.reasoning.model import SCRIPTED, ScriptedModel, calling
from support.stores.stores import sqlite_store_at

BEGINNING = "Bees " * BUFFERED_CHARS
"""More text than is held back until it is clear that no call follows."""
DONE = Completion("", input_tokens=7, output_tokens=3)


class ChatWithModel:
    """An application whose reasoner asks a scripted model."""

    def __init__(self, api: Api, model: ScriptedModel) -> None:
        self.api, self.model = api, model
        self.events: list[Event] = []
        api.runtime.events.on_event(lambda event, at: self.events.append(event))

    def ask(self, *replies: Any, path: str = PATHS[0], **body: Any) -> Any:
        self.model.replies = list(replies)
        self.model.requests.clear()
        return self.api.ok(
            self.api.post(
                path, {"query": "What does alice keep?", "include_evidence": True, **body}
            )
        )

    def result(self) -> str:
        """What the last tool gave."""
        return [
            turn.content
            for request in self.model.requests
            for turn in request.turns
            if turn.role == "tool"
        ][-1]

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [event.data() for event in self.events if kind == event.TYPE]


@contextmanager
def open_chat(folder: Path, uri: str = "memory://", **settings: str) -> Iterator[ChatWithModel]:
    model = ScriptedModel()
    environ = {
        "DB_CONNECTION_URI": uri,
        "REASONER": "auto",
        "LLM_RETRY_PAUSE_SECONDS": "0.001",
        **SCRIPTED,
        **settings,
    }
    loaded = load_settings(environ=environ, cwd=folder)
    runtime = open_runtime(loaded, "api", plugins=load_plugins(loaded, extra=[model]))
    runtime.storage.migrate()
    try:
        api = Api(create_app(runtime=runtime), runtime, "w")
        api.say(
            "home",
            ("alice", "I keep bees, near the old mill."),
            ("bob", "How many hives?"),
            ("alice", "Seven hives."),
        )
        api.say(
            "work", ("carol", "The audit is on Monday."), ("alice", "I will prepare the ledgers.")
        )
        api.conclude("alice", "alice", "Alice keeps bees.", session="home")
        api.conclude("alice", "alice", "Alice prepares ledgers.", session="work")
        api.conclude("bob", "bob", "Bob is curious.", session="home")
        yield ChatWithModel(api, model)
    finally:
        runtime.close()


@pytest.fixture
def chat(local_storage_name: str, tmp_path: Path) -> Iterator[ChatWithModel]:
    uri = "memory://" if local_storage_name == "memory" else sqlite_store_at(tmp_path / "c.db")
    with open_chat(tmp_path, uri, THREADS="4") as model_chat:
        yield model_chat


def uids(chat: ChatWithModel) -> dict[str, str]:
    return {
        item["content"]: item["id"]
        for item in chat.api.ok(chat.api.post("/conclusions/list", {}))["items"]
    }


class TestAnswer:
    @pytest.mark.slow
    def test_the_model_answers_from_evidence_and_look_ups(self, chat: ChatWithModel) -> None:
        answer = chat.ask(calling(("grep_messages", {"text": "hives"})), "Seven hives of bees.")
        assert answer["content"] == "Seven hives of bees."
        assert "Alice keeps bees." in chat.model.requests[0].turns[1].content
        assert "> " in chat.result()
        assert "alice (session home): Seven hives." in chat.result()

    @pytest.mark.slow
    def test_an_empty_answer_is_null_and_has_evidence(self, chat: ChatWithModel) -> None:
        answer = chat.ask("", "", "")
        assert answer["content"] is None
        assert answer["evidence"]["conclusions"]

    @pytest.mark.slow
    def test_the_answer_follows_the_format(self, chat: ChatWithModel) -> None:
        schema = {
            "type": "object",
            "properties": {"hives": {"type": "integer"}},
            "required": ["hives"],
        }
        answer = chat.ask("READY", {"hives": 7}, response_format=schema)
        assert json.loads(answer["content"]) == {"hives": 7}

    @pytest.mark.slow
    @pytest.mark.parametrize("level", ["minimal", "low"])
    def test_each_level_has_its_reasoner(self, tmp_path: Path, level: str) -> None:
        """`auto`: a level whose model is not configured is answered without one."""
        without = {"DIALECTIC_LEVELS__MINIMAL__MODEL_CONFIG__TRANSPORT": "openai"}
        with open_chat(tmp_path, **without) as model_chat:
            answer = model_chat.ask("By the model.", reasoning_level=level)
            assert (answer["content"] == "By the model.") == (level == "low")
            assert ("No language model" in answer["content"]) == (level == "minimal")
            assert (answer["evidence"]["reasoning_trace_id"] is None) == (level == "minimal")

    @pytest.mark.slow
    def test_no_connection_is_open_during_a_call_of_the_model(self, chat: ChatWithModel) -> None:
        def write(request: CompletionRequest) -> Any:
            # A write inside an open transaction of this thread is an error, and so is one inside a
            # view on this storage.
            chat.api.say("home", ("bob", "I am writing meanwhile."))
            return calling(("search_messages", {"query": "meanwhile"})) if request.tools else "Yes."

        chat.model.say = write
        assert chat.ask()["content"] == "Yes."
        assert "I am writing meanwhile." in chat.result()


class TestEvidence:
    @pytest.mark.slow
    def test_has_everything_read_once_and_in_order(self, chat: ChatWithModel) -> None:
        ids = uids(chat)
        answer = chat.ask(
            calling(
                ("get_observation_context", {"id": "[c1]"}),
                ("search_memory", {"query": "bees"}),
            ),
            calling(
                ("grep_messages", {"text": "ledgers"}),
                ("listen", {}),
                ("get_reasoning_chain", {"conclusion_id": "nobody"}),
            ),
            "Bees.",
        )
        evidence = answer["evidence"]
        assert {item["content"] for item in evidence["conclusions"]} == {
            "Alice keeps bees.",
            "Alice prepares ledgers.",
        }
        assert len({item["id"] for item in evidence["messages"]}) == len(evidence["messages"]) == 5
        opening = chat.model.requests[0].turns[1].content
        (first,) = [uid for text, uid in ids.items() if re.search(rf"\[c1\].*{text}", opening)]
        assert evidence["tool_calls"] == [
            {"tool_name": "get_observation_context", "tool_input": {"id": first}},
            {"tool_name": "search_memory", "tool_input": {"query": "bees"}},
            {"tool_name": "grep_messages", "tool_input": {"text": "ledgers"}},
        ]
        assert isinstance(evidence["reasoning_trace_id"], str)

    @pytest.mark.slow
    def test_includes_what_tools_read(self, chat: ChatWithModel) -> None:
        chat.api.conclude("alice", "alice", *[f"Alice saw whale number {n}." for n in range(80)])
        answer = chat.ask(
            calling(("search_memory", {"query": "whale", "limit": 40})),
            "Whales.",
            query="whale",
            reasoning_level="minimal",
        )
        assert len(answer["evidence"]["conclusions"]) >= 40

    @pytest.mark.slow
    @pytest.mark.parametrize("path", PATHS)
    def test_is_the_last_event_of_a_stream(self, chat: ChatWithModel, path: str) -> None:
        chat.model.replies = [
            calling(("search_memory", {"query": "bees"})),
            [BEGINNING, ".", DONE],
        ]
        body = {"query": "What?", "stream": True, "include_evidence": True}
        events = [
            json.loads(part.removeprefix("data: "))
            for part in chat.api.post(path, body).text.split("\n\n")
            if part
        ]
        assert [event.get("delta") for event in events] == [
            {"content": BEGINNING},
            {"content": "."},
            None,
        ]
        assert events[-1]["done"] is True
        assert events[-1]["evidence"]["tool_calls"] == [
            {"tool_name": "search_memory", "tool_input": {"query": "bees"}}
        ]


class TestBounds:
    """A model cannot look up more than the caller may see."""

    @pytest.mark.slow
    def test_tools_read_no_other_sessions_and_memories(self, chat: ChatWithModel) -> None:
        chat.ask(calling(("grep_messages", {"text": "ledgers"})), "?", path="/peers/bob/chat")
        assert chat.result() == "Nothing was found."
        for id in (uids(chat)["Alice keeps bees."], "c9", "m9"):
            call = ("get_observation_context", {"id": id})
            chat.ask(calling(call), "?", path="/peers/bob/chat")
            assert chat.result().startswith("Error: There is nothing with the id")
        answer = chat.ask(
            calling(("search_memory", {"query": "Alice bees ledgers"})), "?", path="/peers/bob/chat"
        )
        assert {item["observer_id"] for item in answer["evidence"]["conclusions"]} == {"bob"}

    @pytest.mark.slow
    def test_a_session_restricts_messages(self, chat: ChatWithModel) -> None:
        answer = chat.ask(
            calling(("get_messages_by_date_range", {"since": "2000-01-01"})), "?", session_id="work"
        )
        assert {item["session_id"] for item in answer["evidence"]["messages"]} == {"work"}
        assert "ledgers" in chat.result()

    @pytest.mark.slow
    def test_an_allowlist_restricts_both_and_disables_chains(self, chat: ChatWithModel) -> None:
        answer = chat.ask(
            calling(
                ("search_memory", {"query": "bees ledgers"}),
                ("search_messages", {"query": "bees ledgers hives audit"}),
            ),
            "?",
            filters={"session_id": ["home"]},
        )
        assert {
            item["session_id"]
            for item in (*answer["evidence"]["conclusions"], *answer["evidence"]["messages"])
        } == {"home"}
        assert "get_reasoning_chain" not in [tool.name for tool in chat.model.requests[0].tools]
        chat.ask(calling(("search_memory", {"query": "bees"})), "?", filters={"session_id": []})
        assert chat.result() == "Nothing was found."

    @pytest.mark.slow
    def test_workspace_chat_reads_everything_and_cards(self, chat: ChatWithModel) -> None:
        chat.api.put("/peers/carol/card", {"peer_card": ["IDENTITY: Carol"]})
        answer = chat.ask(
            calling(
                ("get_peer_card", {"peer": "carol"}),
                ("get_peer_card", {"peer": "nobody"}),
                ("grep_messages", {"text": "audit"}),
            ),
            "?",
            path=PATHS[1],
        )
        card, unknown, hits = [
            turn.content for turn in chat.model.last.turns if turn.role == "tool"
        ]
        assert card == "IDENTITY: Carol"
        assert "no peer 'nobody'" in unknown
        assert "The audit is on Monday." in hits
        assert {item["observer_id"] for item in answer["evidence"]["conclusions"]} == {
            "alice",
            "bob",
        }

    @pytest.mark.slow
    def test_cards_are_not_read_if_the_configuration_forbids_it(self, chat: ChatWithModel) -> None:
        chat.api.ok(chat.api.put("", {"configuration": {"peer_card": {"use": False}}}))
        chat.ask("?", path=PATHS[1])
        assert "get_peer_card" not in [tool.name for tool in chat.model.requests[0].tools]


class SlowModel(ScriptedModel):
    """After its replies it sends a first piece, and the rest only once it is let go on."""

    def __init__(self) -> None:
        super().__init__()
        self.go_on = threading.Event()
        self.sent_last = threading.Event()

    def stream(self, request: CompletionRequest) -> Iterator[str | Completion]:
        if self.replies:
            yield from super().stream(request)
            return
        self.requests.append(request)
        yield BEGINNING
        assert self.go_on.wait(PATIENCE)
        yield " and last."
        self.sent_last.set()
        yield DONE


class TestStream:
    @pytest.mark.parametrize("path", PATHS)
    @pytest.mark.slow
    def test_the_first_delta_arrives_before_the_model_sent_its_last_token(
        self, tmp_path: Path, path: str
    ) -> None:
        with open_chat(tmp_path) as model_chat:
            slow = SlowModel()
            slow.replies = [
                calling(("search_memory", {"query": "bees"}), beside="I will look that up."),
            ]
            model_chat.model.complete, model_chat.model.stream = slow.complete, slow.stream  # type: ignore[method-assign]
            with served(model_chat.api) as port, stream(port, path) as answer:
                assert next_event(answer) == {"delta": {"content": BEGINNING}, "done": False}
                assert not slow.sent_last.is_set()
                slow.go_on.set()
                assert next_event(answer) == {"delta": {"content": " and last."}, "done": False}
                assert next_event(answer) == {"done": True}

    @pytest.mark.slow
    def test_a_failure_in_the_middle_never_looks_complete(self, chat: ChatWithModel) -> None:
        chat.model.replies = [
            [BEGINNING, ModelFailure("the connection was cut", retryable=True)],
        ]
        with served(chat.api) as port, stream(port) as answer:
            received = b""
            try:
                while part := answer.read1():
                    received += part
            except Exception as error:
                # However the client's library says that the body did not come to its end.
                received += type(error).__name__.encode()
        assert BEGINNING.encode() in received
        assert b'"done": true' not in received
        assert chat.of("dialectic.completed") == []

    @pytest.mark.slow
    def test_chat_holds_at_most_half_of_the_threads(self, tmp_path: Path) -> None:
        with open_chat(tmp_path, THREADS="4") as model_chat:
            slow = SlowModel()
            model_chat.model.complete, model_chat.model.stream = slow.complete, slow.stream  # type: ignore[method-assign]
            with (
                served(model_chat.api) as port,
                stream(port) as one,
                stream(port, PATHS[1]) as other,
            ):
                next_event(one)
                next_event(other)
                assert model_chat.api.post(PATHS[0], {"query": "x"}).status_code == 503
                assert model_chat.api.ids("/peers/list") == ["alice", "bob", "carol"]
                slow.go_on.set()
                for answer in (one, other):
                    while next_event(answer) != {"done": True}:
                        pass


class TestTold:
    @pytest.mark.slow
    def test_events_report_rounds_calls_and_the_answer(self, chat: ChatWithModel) -> None:
        look = calling(("search_memory", {"query": "bees", "limit": 3}), ("listen", {}))
        chat.ask(look, "Bees.", session_id="home", reasoning_level="high")
        (whole,) = chat.of("dialectic.completed")
        run_id = whole["run_id"]
        assert {name: value for name, value in whole.items() if name != "total_duration_ms"} == {
            "run_id": run_id,
            "workspace_name": "w",
            "peer_name": "alice",
            "session_name": "home",
            "reasoning_level": "high",
            "total_iterations": 2,
            "prefetched_conclusion_count": 2,
            "tool_calls_count": 2,
            "input_tokens": 150,
            "output_tokens": 15,
            "cache_read_tokens": 1,
            "cache_creation_tokens": 2,
            "hit_input_token_cap": False,
        }
        assert whole["total_duration_ms"] > 0
        rounds = chat.of("agent.iteration")
        assert [
            (event["iteration"], list(event["tool_calls"]), event["input_tokens"])
            for event in rounds
        ] == [
            (1, ["search_memory", "listen"], 50),
            (2, [], 100),
        ]
        good, bad = chat.of("agent.tool.call.completed")
        assert (good["is_error"], good["top_k"], good["query_tokens"], good["results_count"]) == (
            False,
            3,
            2,
            2,
        )
        assert (good["used_embedding"], good["embedding_query_count"]) == (True, 1)
        assert (bad["is_error"], bad["results_count"], bad["provider_tool_call_id"]) == (
            True,
            None,
            "call-1",
        )
        assert {event["run_id"] for event in (good, bad, *rounds)} == {run_id}
        assert "bees" not in repr([event.data() for event in chat.events])

    @pytest.mark.slow
    @pytest.mark.parametrize("stream", [False, True])
    def test_events_report_the_rounds_of_a_failed_run(
        self, chat: ChatWithModel, stream: bool
    ) -> None:
        look = calling(("search_memory", {"query": "bees"}))
        chat.model.replies = [look]
        chat.model.say = lambda request: ModelFailure("down", retryable=False)
        assert chat.api.post(PATHS[0], {"query": "What?", "stream": stream}).text
        (one,) = chat.of("agent.iteration")
        assert (one["iteration"], list(one["tool_calls"]), one["input_tokens"]) == (
            1,
            ["search_memory"],
            50,
        )
        assert len(chat.of("agent.tool.call.completed")) == 1
        (whole,) = chat.of("dialectic.completed")
        assert whole["run_id"] == one["run_id"]

    @pytest.mark.slow
    def test_events_of_workspace_chat_name_no_peer(self, chat: ChatWithModel) -> None:
        chat.ask("Bees.", path=PATHS[1])
        (whole,) = chat.of("dialectic.completed")
        assert (whole["peer_name"], whole["session_name"]) == (None, None)
