"""Streams of server-sent events: how they are framed, that they flow, how they fail, and how many
there may be."""

from __future__ import annotations

import http.client
import json
import logging
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from werkzeug.serving import make_server

from api.conftest import Api
from memservice.api.streaming import StreamBroken
from memservice.spi.reasoner import AnswerRequest
from support.api.answering_reasoner import AnsweringReasoner, talking

PATIENCE = 30.0
PATHS = ("/peers/alice/chat", "/chat")


@pytest.fixture
def api_and_reasoner(tmp_path: Path) -> Iterator[tuple[Api, AnsweringReasoner]]:
    with talking(tmp_path, THREADS="4") as (api, reasoner):
        api.say("s", ("alice", "I keep bees."))
        yield api, reasoner


@contextmanager
def served(api: Api) -> Iterator[int]:
    """The application on a port, each request in a thread of its own."""
    server = make_server("127.0.0.1", 0, api.app, threaded=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join(PATIENCE)
        server.server_close()


@contextmanager
def stream(port: int, path: str = PATHS[0]) -> Iterator[http.client.HTTPResponse]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    sent = json.dumps({"query": "bees", "stream": True})
    connection.request(
        "POST",
        f"/v3/workspaces/w{path}",
        sent,
        {"Content-Type": "application/json", "Accept": "text/event-stream"},
    )
    with closing(connection), closing(connection.getresponse()) as answer:
        yield answer


def next_event(answer: http.client.HTTPResponse) -> Any:
    line = answer.readline()
    assert line.startswith(b"data: ")
    assert answer.readline() == b"\n"
    return json.loads(line[6:])


class TestFraming:
    @pytest.mark.parametrize("path", PATHS)
    def test_events_have_the_documented_bytes_and_headers(
        self, api_and_reasoner: tuple[Api, AnsweringReasoner], path: str
    ) -> None:
        api, reasoner = api_and_reasoner
        reasoner.say = lambda request: ["Ja, ", "", "Honig für 5 €\n🐝", '"}']
        answer = api.post(path, {"query": "bees", "stream": True})
        assert answer.status_code == 200
        assert answer.headers["Content-Type"] == "text/event-stream; charset=utf-8"
        assert answer.headers["Cache-Control"] == "no-cache"
        assert answer.headers["X-Accel-Buffering"] == "no"
        assert "Content-Length" not in answer.headers
        assert answer.data == (
            b'data: {"delta": {"content": "Ja, "}, "done": false}\n\n'
            b'data: {"delta": {"content": "Honig f\\u00fcr 5 \\u20ac\\n\\ud83d\\udc1d"}, '
            b'"done": false}\n\n'
            b'data: {"delta": {"content": "\\"}"}, "done": false}\n\n'
            b'data: {"done": true}\n\n'
        )

    @pytest.mark.slow
    @pytest.mark.parametrize("path", PATHS)
    def test_evidence_comes_with_the_last_event(
        self, api_and_reasoner: tuple[Api, AnsweringReasoner], path: str
    ) -> None:
        api, _ = api_and_reasoner
        plain = api.ok(api.post(path, {"query": "bees", "include_evidence": True}))
        events = (
            api.post(path, {"query": "bees", "stream": True, "include_evidence": True})
            .data.decode("ascii")
            .split("\n\n")
        )
        assert events.pop() == ""
        last = json.loads(events[-1].removeprefix("data: "))
        assert last == {"done": True, "evidence": plain["evidence"]}
        assert list(last["evidence"]) == [
            "conclusions",
            "messages",
            "tool_calls",
            "reasoning_trace_id",
        ]
        assert all("evidence" not in event for event in events[:-1])

    def test_an_empty_answer_is_one_event(
        self, api_and_reasoner: tuple[Api, AnsweringReasoner]
    ) -> None:
        api, reasoner = api_and_reasoner
        reasoner.say = lambda request: []
        assert (
            api.post(PATHS[0], {"query": "bees", "stream": True}).data
            == b'data: {"done": true}\n\n'
        )


class TestFlow:
    @pytest.mark.parametrize("path", PATHS)
    @pytest.mark.slow
    def test_pieces_arrive_while_the_reasoner_still_works(
        self, api_and_reasoner: tuple[Api, AnsweringReasoner], path: str
    ) -> None:
        api, reasoner = api_and_reasoner
        arrivals = [threading.Event() for _ in range(2)]

        def slowly(request: AnswerRequest) -> Iterable[str]:
            yield "first"
            # Goes on only once the client says that it has heard: with a buffer anywhere, nobody
            # would get any further.
            assert arrivals[0].wait(PATIENCE)
            yield "second"
            assert arrivals[1].wait(PATIENCE)
            yield "third"

        reasoner.say = slowly
        with served(api) as port, stream(port, path) as answer:
            assert next_event(answer) == {"delta": {"content": "first"}, "done": False}
            arrivals[0].set()
            assert next_event(answer) == {"delta": {"content": "second"}, "done": False}
            arrivals[1].set()
            assert next_event(answer) == {"delta": {"content": "third"}, "done": False}
            assert next_event(answer) == {"done": True}

    @pytest.mark.slow
    def test_a_client_that_disconnects_ends_the_work(
        self, api_and_reasoner: tuple[Api, AnsweringReasoner]
    ) -> None:
        api, reasoner = api_and_reasoner
        ended = threading.Event()

        def endlessly(request: AnswerRequest) -> Iterable[str]:
            try:
                while True:
                    yield "and so on " * 1000
            finally:
                ended.set()

        reasoner.say = endlessly
        with served(api) as port:
            with stream(port) as answer:
                next_event(answer)
            assert ended.wait(PATIENCE)


class TestFailure:
    def test_a_failure_before_the_first_piece_is_an_error_response(
        self, api_and_reasoner: tuple[Api, AnsweringReasoner]
    ) -> None:
        api, reasoner = api_and_reasoner

        def fail(request: AnswerRequest) -> Iterable[str]:
            raise ConnectionError("no model")

        reasoner.say = lambda request: (piece for part in [fail] for piece in part(request))
        answer = api.post(PATHS[0], {"query": "bees", "stream": True})
        assert (answer.status_code, answer.get_json()) == (
            500,
            {"detail": "An unexpected error occurred"},
        )

    def test_a_later_failure_breaks_off_the_stream(
        self, api_and_reasoner: tuple[Api, AnsweringReasoner], caplog: pytest.LogCaptureFixture
    ) -> None:
        api, reasoner = api_and_reasoner

        def fail(request: AnswerRequest) -> Iterable[str]:
            yield "Half of"
            raise ConnectionError(request.question.upper())

        reasoner.say = fail
        received: list[bytes] = []
        with caplog.at_level(logging.INFO), pytest.raises(StreamBroken):
            for part in api.client.post(
                "/v3/workspaces/w/chat", json={"query": "bees", "stream": True}, buffered=False
            ).response:
                received.append(part if isinstance(part, bytes) else part.encode())
        assert received == [b'data: {"delta": {"content": "Half of"}, "done": false}\n\n']
        assert "ConnectionError" in caplog.text
        assert "BEES" not in caplog.text

    def test_an_answer_that_violates_the_format_never_looks_complete(
        self, api_and_reasoner: tuple[Api, AnsweringReasoner]
    ) -> None:
        api, reasoner = api_and_reasoner
        reasoner.say = lambda request: ["{}"]
        schema = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
        answer = api.client.post(
            "/v3/workspaces/w/chat",
            json={"query": "bees", "stream": True, "response_format": schema},
        )
        with pytest.raises(StreamBroken):
            assert b'done": true' not in answer.data


class TestSlots:
    """With four threads, two chats at once."""

    @pytest.mark.slow
    def test_without_a_free_slot_the_answer_is_503(
        self, api_and_reasoner: tuple[Api, AnsweringReasoner]
    ) -> None:
        api, reasoner = api_and_reasoner
        let_go = threading.Event()

        def hold(request: AnswerRequest) -> Iterable[str]:
            yield "begun"
            assert let_go.wait(PATIENCE)

        reasoner.say = hold
        with served(api) as port:
            with stream(port, PATHS[0]) as one, stream(port, PATHS[1]) as other:
                for answer in (one, other):
                    next_event(answer)
                for body in ({"stream": True}, {"stream": False}):
                    refused = api.post(PATHS[0], {"query": "bees", **body})
                    assert refused.status_code == 503
                    assert int(refused.headers["Retry-After"]) >= 1
                    assert "try again" in refused.get_json()["detail"]
                # Everything else is served meanwhile.
                assert api.ids("/peers/list") == ["alice"]
                let_go.set()
                for answer in (one, other):
                    assert next_event(answer) == {"done": True}
            assert _soon_answered(api)

    def test_plain_answers_use_a_slot_too(
        self, api_and_reasoner: tuple[Api, AnsweringReasoner]
    ) -> None:
        api, reasoner = api_and_reasoner
        begun, let_go = threading.Semaphore(0), threading.Event()

        def hold(request: AnswerRequest) -> Iterable[str]:
            begun.release()
            assert let_go.wait(PATIENCE)
            yield "done"

        reasoner.say = hold

        def ask() -> None:
            api.app.test_client().post("/v3/workspaces/w/chat", json={"query": "x"})

        threads = [threading.Thread(target=ask) for _ in range(2)]
        for thread in threads:
            thread.start()
        for _ in threads:
            assert begun.acquire(timeout=PATIENCE)
        assert api.post(PATHS[0], {"query": "bees", "stream": True}).status_code == 503
        let_go.set()
        for thread in threads:
            thread.join(PATIENCE)
        assert api.post(PATHS[0], {"query": "bees"}).status_code == 200

    @pytest.mark.slow
    def test_a_failure_frees_the_slot(
        self, api_and_reasoner: tuple[Api, AnsweringReasoner]
    ) -> None:
        api, reasoner = api_and_reasoner

        def fail(request: AnswerRequest) -> Iterable[str]:
            yield "x"
            raise ConnectionError

        reasoner.say = fail
        for _ in range(3):
            for stream in (False, True):
                assert (
                    api.post("/peers/nobody/chat", {"query": "x", "stream": stream}).status_code
                    == 404
                )
                assert (
                    api.post(
                        "/chat", {"query": "x", "stream": stream, "response_format": {}}
                    ).status_code
                    == 422
                )
            assert api.post("/chat", {"query": "x"}).status_code == 500
            broken = api.client.post("/v3/workspaces/w/chat", json={"query": "x", "stream": True})
            with pytest.raises(StreamBroken):
                broken.get_data()
            broken.close()
        reasoner.say = lambda request: ["fine"]
        assert _soon_answered(api)

    def test_a_client_that_never_reads_frees_its_slot(
        self, api_and_reasoner: tuple[Api, AnsweringReasoner]
    ) -> None:
        api, _ = api_and_reasoner
        for _ in range(3):
            api.client.post(
                "/v3/workspaces/w/chat", json={"query": "x", "stream": True}, buffered=False
            ).close()
        assert _soon_answered(api)


def _soon_answered(api: Api) -> bool:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if api.post(PATHS[0], {"query": "bees"}).status_code == 200:
            return True
        time.sleep(0.02)
    return False
