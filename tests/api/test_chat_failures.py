"""Chat over HTTP when its language model does not answer: in every generation, whole and as a
stream."""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from werkzeug.test import TestResponse

from api.test_chat_model import ChatWithModel, open_chat
from memservice.spi.llm import Completion, CompletionRequest, ModelFailure, Refusal
from memservice.testing.llm import Say
from memservice.testing.model_protocols import OpenAiWire
from memservice.testing.model_server import Handler, Request, drip_head, scripted
from support.api.v1_client import V1Client
from support.reasoning.model import calling

NOTICE = "X-Memservice-Notice"
UNAUTHORISED = "openai answered with status 401 (invalid_api_key): is the key right?"


def fails(**more: Any) -> ModelFailure:
    fields: dict[str, Any] = {"retryable": False, "status": 401}
    return ModelFailure(UNAUTHORISED, **(fields | more))


@pytest.fixture
def chat(tmp_path: Path) -> Iterator[ChatWithModel]:
    with open_chat(tmp_path) as model_chat:
        yield model_chat


@pytest.fixture
def strict(tmp_path: Path) -> Iterator[ChatWithModel]:
    """A failure is an error."""
    with open_chat(tmp_path, DIALECTIC_ON_FAILURE="error") as model_chat:
        yield model_chat


def ask(
    chat: ChatWithModel,
    generation: str,
    *,
    stream: bool = False,
    connection: socket.socket | None = None,
) -> TestResponse:
    """What one generation answers."""
    client = chat.api.client
    extra: Any = {"environ_overrides": {"gunicorn.socket": connection}}
    if generation != "v1":
        path = f"/{generation}/workspaces/w/peers/alice/chat"
        body = {"query": "What does alice keep?", "stream": stream}
        return client.post(path, json=body, **extra)
    first = V1Client(chat.api)
    session = first.session(first.user(first.app("app"), "ann"))
    return client.post(f"/v1{session}/chat", json={"queries": "What?", "stream": stream}, **extra)


GENERATIONS = ("v1", "v2", "v3")


@pytest.mark.slow
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("generation", GENERATIONS)
def test_a_failed_model_is_replaced_by_an_answer_without_one(
    chat: ChatWithModel, generation: str, stream: bool, caplog: pytest.LogCaptureFixture
) -> None:
    chat.model.say = lambda request: fails()
    with caplog.at_level(logging.INFO, "memservice"):
        answer = ask(chat, generation, stream=stream)
    assert answer.status_code == 200
    assert UNAUTHORISED in answer.headers[NOTICE]
    if generation != "v1":
        assert "The language model did not answer" in answer.text
        assert "Alice keeps bees." in answer.text
    lines = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert [record.getMessage() for record in lines] == [
        f"chat: the language model did not answer: {UNAUTHORISED}"
    ]
    assert len(chat.model.requests) == 1, "a wrong key is not tried again"


def in_each_way(*values: Any) -> list[Any]:
    """Generation, stream and value: all of them, of which each value, and each generation with and
    without a stream, is not heavy."""
    ways = list(product(GENERATIONS, (False, True)))
    return [
        pytest.param(
            *way, value, marks=() if number % len(values) == position else pytest.mark.heavy
        )
        for position, value in enumerate(values)
        for number, way in enumerate(ways)
    ]


@pytest.mark.parametrize(
    ("generation", "stream", "cause"),
    in_each_way(
        (fails(), 502, {"x-should-retry": "false"}),
        (fails(status=429, retry_after=75.5), 503, {"Retry-After": "76"}),
        (fails(status=503), 503, {"Retry-After": "30"}),
        (fails(status=500), 502, {"x-should-retry": "false"}),
    ),
)
@pytest.mark.slow
def test_an_error_names_the_cause(
    strict: ChatWithModel,
    generation: str,
    stream: bool,
    cause: tuple[ModelFailure, int, dict[str, str]],
) -> None:
    failure, status, headers = cause
    strict.model.say = lambda request: failure
    answer = ask(strict, generation, stream=stream)
    assert (answer.status_code, answer.get_json()) == (
        status,
        {"detail": f"the language model did not answer: {UNAUTHORISED}"},
    )
    assert {name: answer.headers.get(name) for name in headers} == headers


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["extractive", "error"])
def test_a_refusal_is_neither_an_answer_nor_an_error(tmp_path: Path, mode: str) -> None:
    with open_chat(tmp_path, DIALECTIC_ON_FAILURE=mode) as model_chat:
        model_chat.model.say = lambda request: Refusal("openai: the model declines to answer")
        answer = ask(model_chat, "v3")
        assert (answer.status_code, answer.get_json()) == (200, {"content": None})
        assert "refused to answer" in answer.headers[NOTICE]
        stream = ask(model_chat, "v3", stream=True)
        assert stream.text == 'data: {"done": true}\n\n'
        assert "refused to answer" in stream.headers[NOTICE]


@pytest.mark.slow
def test_a_notice_is_one_line_of_ascii(chat: ChatWithModel) -> None:
    chat.model.say = lambda request: fails().__class__("ü\r\nSet-Cookie: x", retryable=False)
    answer = ask(chat, "v3")
    assert answer.headers[NOTICE].startswith("the language model did not answer: ? Set-Cookie: x;")
    assert "Set-Cookie" not in answer.headers


@pytest.mark.slow
def test_look_ups_before_a_failure_remain_evidence(chat: ChatWithModel) -> None:
    chat.model.replies = [calling(("grep_messages", {"text": "hives"})), fails()]
    answer = chat.api.ok(
        chat.api.post(
            "/peers/alice/chat", {"query": "What does alice keep?", "include_evidence": True}
        )
    )
    assert answer["content"].startswith("The language model did not answer")
    assert [call["tool_name"] for call in answer["evidence"]["tool_calls"]] == ["grep_messages"]


@pytest.mark.slow
def test_a_bug_in_a_provider_is_still_an_error(chat: ChatWithModel) -> None:
    chat.model.say = lambda request: KeyError("choices")
    assert ask(chat, "v3").status_code == 500


class TestDeadline:
    @pytest.mark.slow
    @pytest.mark.parametrize("stream", [False, True])
    @pytest.mark.parametrize("mode", ["extractive", "error"])
    def test_a_call_that_hangs_is_ended(self, tmp_path: Path, mode: str, stream: bool) -> None:
        def hang(handler: Handler, request: Request) -> None:
            handler.wait_to_be_left()

        def say(handler: Handler, request: Request) -> None:
            handler.json(OpenAiWire().whole(Say(("Seven hives.",))))

        with scripted() as server:
            server.then(say)
            settings = hosted(server.url, DIALECTIC_DEADLINE_SECONDS="2", DIALECTIC_ON_FAILURE=mode)
            with open_chat(tmp_path, **settings) as model_chat:
                # On a busy machine, what the first call imports may take longer than the deadline.
                ask(model_chat, "v3")
                earlier = len(server.requests)
                server.then(hang)
                began = time.monotonic()
                answer = ask(model_chat, "v3", stream=stream)
                assert time.monotonic() - began < 20
                text = "the language model did not answer: it took longer than 2 s"
                if mode == "error":
                    assert (answer.status_code, answer.get_json()) == (504, {"detail": text})
                else:
                    assert answer.status_code == 200
                    assert answer.headers[NOTICE].startswith(text)
                assert len(server.requests) == earlier + 1
                assert server.left.wait(20), "the call is ended, not left alone"

    @pytest.mark.slow
    def test_all_calls_share_the_deadline(self, tmp_path: Path) -> None:
        with open_chat(tmp_path, DIALECTIC_DEADLINE_SECONDS="0.6") as model_chat:
            model_chat.model.say = lambda request: slow(
                calling(("grep_messages", {"text": "hives"}))
            )
            answer = ask(model_chat, "v3")
            assert "it took longer than 0.6 s" in answer.headers[NOTICE]
            requests = model_chat.model.requests
            assert 2 <= len(requests) <= 4
            timeouts = [request.timeout or 0 for request in requests]
            assert timeouts == sorted(timeouts, reverse=True)
            assert 0 < timeouts[-1] < timeouts[0] <= 0.6

    @pytest.mark.slow
    def test_a_model_answers_from_what_it_has_when_time_is_short(self, tmp_path: Path) -> None:
        def say(request: CompletionRequest) -> Completion | str:
            if request.tool_choice == "none":
                return "Seven hives."
            return slow(calling(("grep_messages", {"text": "hives"})))

        with open_chat(tmp_path, DIALECTIC_DEADLINE_SECONDS="1") as model_chat:
            model_chat.model.say = say
            answer = ask(model_chat, "v3")
            assert answer.get_json() == {"content": "Seven hives."}
            assert NOTICE not in answer.headers
            assert model_chat.model.last.turns[-1].role == "user"

    @pytest.mark.slow
    def test_a_stream_that_has_begun_is_read_to_its_end(self, tmp_path: Path) -> None:
        wire, gate = OpenAiWire(), threading.Event()

        def write(handler: Handler, request: Request) -> None:
            if not wire.is_stream(request):
                handler.json(wire.whole(Say(("READY",))))
                return
            handler.begin_chunks("text/event-stream")
            for number, event in enumerate(
                wire.events(Say(("Seven hives" + " of bees" * 30, ".")))
            ):
                if number == 1:
                    assert gate.wait(2.5) is False, "later than the deadline"
                handler.chunk(event)
            handler.end_chunks()

        with scripted() as server:
            server.then(write)
            settings = hosted(server.url, DIALECTIC_DEADLINE_SECONDS="2")
            with open_chat(tmp_path, **settings) as model_chat:
                answer = ask(model_chat, "v3", stream=True)
                assert '"done": true' in answer.text
                assert NOTICE not in answer.headers

    @pytest.mark.slow
    def test_reasoning_does_not_end_it(self, tmp_path: Path) -> None:
        """The first piece of a stream is not yet text for the client."""
        wire = OpenAiWire()

        def think(handler: Handler, request: Request) -> None:
            handler.begin_chunks("text/event-stream")
            first, piece, *_ = wire.events(Say(("<think>", "hm ", "Seven.")))
            handler.chunk(first)
            while not handler.server.closed.wait(0.05):
                handler.chunk(piece)

        with scripted() as server:
            server.then(think)
            settings = hosted(server.url, DIALECTIC_DEADLINE_SECONDS="0.5")
            with open_chat(tmp_path, **settings) as model_chat:
                began = time.monotonic()
                answer = ask(model_chat, "v3", stream=True)
                assert time.monotonic() - began < 20
                assert "it took longer than 0.5 s" in answer.headers[NOTICE]
                assert "Alice keeps bees." in answer.text
                assert server.left.wait(20)


def hosted(url: str, **settings: str) -> dict[str, str]:
    """A model on a server of the test's own."""
    return {
        "DIALECTIC_LEVELS__LOW__MODEL_CONFIG__TRANSPORT": "openai",
        "LLM_OPENAI_BASE_URL": url,
        "LLM_MODEL": "m",
        **settings,
    }


def slow(reply: Completion, seconds: float = 0.25) -> Completion:
    time.sleep(seconds)
    return reply


class TestCaller:
    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("generation", "stream", "phase"),
        in_each_way("before the head", "in the head", "in the answer"),
    )
    def test_a_disconnected_client_ends_the_call_in_progress(
        self, tmp_path: Path, generation: str, stream: bool, phase: str
    ) -> None:
        ours, theirs = socket.socketpair()

        def disconnect(handler: Handler, request: Request) -> None:
            if phase == "in the answer":
                is_stream = OpenAiWire().is_stream(request)
                handler.begin_chunks("text/event-stream" if is_stream else "application/json")
                handler.chunk(b": wait\n" if is_stream else b" ")
            theirs.close()
            if phase == "in the head":
                drip_head(handler, interval=0.05)
            else:
                handler.wait_to_be_left()

        with scripted() as server, ours:
            server.then(disconnect)
            with open_chat(tmp_path, **hosted(server.url)) as model_chat:
                began = time.monotonic()
                answer = ask(model_chat, generation, stream=stream, connection=ours)
                assert answer.status_code == 200
                assert server.left.wait(20), "the call is ended"
                assert time.monotonic() - began < 30, "the deadline is 50 s"
                assert len(server.requests) == 1

    @pytest.mark.slow
    def test_a_next_request_does_not_hide_a_disconnect(self, chat: ChatWithModel) -> None:
        ours, theirs = socket.socketpair()

        def say(request: CompletionRequest) -> Completion:
            theirs.send(b"GET / HTTP/1.1")
            theirs.close()
            return calling(("grep_messages", {"text": "hives"}))

        chat.model.say = say
        with ours:
            ask(chat, "v3", connection=ours)
        assert len(chat.model.requests) == 1

    @pytest.mark.slow
    def test_a_disconnected_client_causes_no_further_call(self, chat: ChatWithModel) -> None:
        ours, theirs = socket.socketpair()

        def say(request: CompletionRequest) -> Completion:
            theirs.close()
            return calling(("grep_messages", {"text": "hives"}))

        chat.model.say = say
        with ours:
            answer = ask(chat, "v3", connection=ours)
        assert answer.get_json() == {"content": None}
        assert len(chat.model.requests) == 1

    @pytest.mark.slow
    def test_a_client_that_waits_is_answered(self, chat: ChatWithModel) -> None:
        ours, theirs = socket.socketpair()
        chat.model.replies = [calling(("grep_messages", {"text": "hives"})), "Seven."]
        with ours, theirs:
            theirs.send(b"GET / HTTP/1.1")  # the next request on the same connection
            answer = ask(chat, "v3", connection=ours)
        assert answer.get_json() == {"content": "Seven."}
