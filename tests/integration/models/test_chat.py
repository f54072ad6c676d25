"""Chat through each protocol, with real connections on both sides: tools, streams that flow, and
streams that are cut."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from api.conftest import Api
from api.test_chat_streaming import next_event, served, stream
from memservice.app import create_app
from memservice.compose import open_runtime
from memservice.reasoning.client import BUFFERED_CHARS
from memservice.settings import load_settings
from memservice.settings.families import transport_key
from memservice.spi.llm import ToolCall
from memservice.testing.llm import Fault, Say
from memservice.testing.model_protocols import AnthropicWire, GeminiWire, OpenAiWire, ResponsesWire
from memservice.testing.model_server import KEY, ScriptedPeer, Server, Wire
from support.models.fixtures import OpenModel

LOOK = Say((), (ToolCall("call-1", "search_memory", {"query": "bees"}),), "tool_calls")
PROTOCOLS: dict[str, tuple[Wire, str]] = {
    "openai": (OpenAiWire(), "/v1"),
    "openai-responses": (ResponsesWire(), "/v1"),
    "anthropic": (AnthropicWire(), ""),
    "gemini": (GeminiWire(), ""),
}


class Spoken:
    """An application whose model is behind a protocol."""

    def __init__(self, api: Api, peer: ScriptedPeer) -> None:
        self.api, self.peer = api, peer


@pytest.fixture(params=PROTOCOLS)
def spoken(
    request: pytest.FixtureRequest, server: Server, open_model: OpenModel, tmp_path: Path
) -> Iterator[Spoken]:
    wire, path = PROTOCOLS[request.param]
    environ = {
        "DB_CONNECTION_URI": "memory://",
        "DIALECTIC_LEVELS__LOW__MODEL_CONFIG__TRANSPORT": request.param,
        f"LLM_{transport_key(request.param).upper()}_BASE_URL": server.url + path,
        f"LLM_{transport_key(request.param).upper()}_API_KEY": KEY,
        "LLM_RETRY_PAUSE_SECONDS": "0.001",
    }
    loaded = load_settings(environ=environ, cwd=tmp_path)
    runtime = open_runtime(loaded, "api")
    runtime.storage.migrate()
    try:
        api = Api(create_app(runtime=runtime), runtime, "w")
        api.peer("alice")
        api.conclude("alice", "alice", "Alice keeps bees.")
        yield Spoken(api, ScriptedPeer(server, wire, open_model(request.param, path)))
    finally:
        runtime.close()


def test_a_model_looks_things_up_and_answers(spoken: Spoken) -> None:
    spoken.peer.says(LOOK, Say(("Alice ", "keeps ", "bees.")))
    answer = spoken.api.ok(
        spoken.api.post("/peers/alice/chat", {"query": "What?", "include_evidence": True})
    )
    assert answer["content"] == "Alice keeps bees."
    assert answer["evidence"]["tool_calls"] == [
        {"tool_name": "search_memory", "tool_input": {"query": "bees"}}
    ]
    first, second = spoken.peer.received()
    # Once as it was found at first, once more as the result of the tool.
    assert (first.count("Alice keeps bees."), second.count("Alice keeps bees.")) == (1, 2)


def test_the_first_delta_arrives_before_the_last_token_was_sent(spoken: Spoken) -> None:
    gate = threading.Event()
    beginning = "Alice " * BUFFERED_CHARS
    spoken.peer.says(LOOK, Say((beginning, "keeps ", "bees."), gate=gate))
    with served(spoken.api) as port, stream(port) as answer:
        assert next_event(answer) == {"delta": {"content": beginning}, "done": False}
        # The rest is only sent now.
        gate.set()
        rest = [next_event(answer) for _ in range(3)]
    assert rest == [
        {"delta": {"content": "keeps "}, "done": False},
        {"delta": {"content": "bees."}, "done": False},
        {"done": True},
    ]
    assert len(spoken.peer.received()) == 2, "the answer takes no call of its own"


@pytest.mark.parametrize("fault", ["cut", "error in stream"])
def test_a_stream_that_breaks_never_looks_complete(
    spoken: Spoken, server: Server, fault: Fault
) -> None:
    spoken.peer.misbehaves(fault)
    breaks = server.script[-1]
    spoken.peer.says(LOOK)
    server.script.append(breaks)
    received = b""
    with served(spoken.api) as port, stream(port) as answer:
        status = answer.status
        try:
            while part := answer.read1():
                received += part
        except (http.client.HTTPException, OSError):
            pass
    assert b'"done": true' not in received
    assert status == 200
    assert json.loads(received.split(b"\n\n")[0].removeprefix(b"data: "))["delta"]["content"]


def test_chat_answers_without_a_model_whose_key_is_refused(spoken: Spoken) -> None:
    spoken.peer.fails(401)
    for body in ({"stream": False}, {"stream": True}):
        answer = spoken.api.post("/peers/alice/chat", {"query": "What?", **body})
        assert answer.status_code == 200
        assert "status 401" in answer.headers["X-Memservice-Notice"]
        assert KEY not in answer.headers["X-Memservice-Notice"]
