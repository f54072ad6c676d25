"""Exchanges of a loop with tools, in every protocol: what is cached, counted and waited for."""

from __future__ import annotations

import itertools
import json
import logging
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from memservice.plugins import Plugins
from memservice.reasoning.models import Models
from memservice.reasoning.prompts.answer import ANSWER_AS_JSON, ANSWER_NOW
from memservice.reasoning.reasoner import LlmReasoner
from memservice.settings import load_settings
from memservice.settings.families import transport_key
from memservice.spi.llm import Completion, ModelFailure, ToolCall
from memservice.spi.providers import Context
from memservice.spi.reasoner import AnswerRequest
from memservice.testing.badmodel import BadModel, ModelRequest, bad_model
from memservice.testing.llm import SCHEMA, Say, ask
from memservice.testing.model_protocols import AnthropicWire, GeminiWire, OpenAiWire, ResponsesWire
from memservice.testing.model_server import Answer, Handler, Request, Server, Wire
from memservice_anthropic.chat import AnthropicModel
from memservice_gemini.chat import GeminiModel
from memservice_openai.chat import OpenAiModel
from memservice_openai.responses import ResponsesModel
from support.models.fixtures import OpenModel
from support.reasoning.toolbox import FakeToolbox, conclusion_evidence

WIRES: dict[str, Wire] = {
    "openai": OpenAiWire(),
    "openai-responses": ResponsesWire(),
    "anthropic": AnthropicWire(),
    "gemini": GeminiWire(),
}
COMBINING = [
    ("openai", OpenAiModel),
    ("openai-responses", ResponsesModel),
    ("anthropic", AnthropicModel),
    ("gemini", GeminiModel),
]
WHOLE = 20.0
"""Seconds that a whole exchange may take, in these tests."""
UNTIL_TEXT = 0.4
"""Seconds until its first text."""


def saying(name: str, say: Say) -> Answer:
    def answer(handler: Handler, request: Request) -> None:
        wire = WIRES[name]
        if wire.is_stream(request):
            handler.whole(b"".join(wire.events(say)), "text/event-stream")
        else:
            handler.json(wire.whole(say))

    return answer


@pytest.mark.parametrize("way", ["complete", "stream"])
@pytest.mark.parametrize("name", WIRES)
def test_the_tokens_of_reasoning_are_counted(
    server: Server, open_model: OpenModel, name: str, way: str
) -> None:
    server.then(saying(name, Say(output_tokens=50, reasoning_tokens=40)))
    model = open_model(name)
    if way == "complete":
        done = model.complete(ask())
    else:
        *_, last = model.stream(ask())
        assert isinstance(last, Completion)
        done = last
    assert (done.output_tokens, done.reasoning_tokens) == (50, 40)


def dripping(pieces: Sequence[str], pause: float) -> Answer:
    """A stream of Chat Completions with a pause between its pieces."""

    def answer(handler: Handler, request: Request) -> None:
        handler.begin_chunks("text/event-stream")
        for event in OpenAiWire().events(Say(pieces)):
            handler.chunk(event)
            time.sleep(pause)
        handler.end_chunks()

    return answer


@pytest.mark.parametrize(
    ("reasoning", "options"),
    [
        (["<think>", *["Hm. "] * 30, "</think>"], {}),
        (["<reasoning>", *["Hm. "] * 30, "</reasoning>"], {}),
        ([*["Hm. "] * 30, "</think>"], {"opens_reasoning": True}),
        ([*["Hm. "] * 30, "</think>"], {"model": "deepseek-r1:8b"}),
    ],
    ids=["tags", "other tags", "no opening tag, learnt", "no opening tag, by name"],
)
def test_reasoning_is_not_the_first_text_of_a_stream(
    server: Server, open_model: OpenModel, reasoning: list[str], options: dict[str, Any]
) -> None:
    """A caller sees nothing of it, so it does not end the wait for the first text."""
    server.then(dripping([*reasoning, "Yes."], UNTIL_TEXT / 8))
    request = ask(timeout=WHOLE, start_timeout=UNTIL_TEXT, **options)
    began = time.monotonic()
    with pytest.raises(ModelFailure, match=f"longer than {UNTIL_TEXT:g} s"):
        list(open_model("openai").stream(request))
    assert time.monotonic() - began < WHOLE / 4


def test_a_stream_whose_text_began_in_time_may_take_longer(
    server: Server, open_model: OpenModel
) -> None:
    pieces = ["<think>", "Hm.", "</think>", "Yes", *[", yes"] * 30]
    server.then(dripping(pieces, UNTIL_TEXT / 8))
    request = ask(timeout=WHOLE, start_timeout=UNTIL_TEXT * 2)
    *_, done = open_model("openai").stream(request)
    assert isinstance(done, Completion)
    assert done.content.endswith(", yes")


ROUNDS = 3


def rendered(name: str, body: Any) -> tuple[Any, list[Any]]:
    """What stays the same in a loop, and the conversation as a flat list, in the order in which the
    provider reads them. Marks of a cache are no part of what it reads."""
    fixed: tuple[str, ...]
    if name == "openai":
        fixed, parts = ("model", "tools", "response_format"), body["messages"]
    elif name == "openai-responses":
        fixed, parts = ("model", "tools", "instructions", "text", "include"), body["input"]
    elif name == "anthropic":
        fixed = ("model", "tools", "system", "output_config", "tool_choice", "thinking")
        parts = [
            {"role": message["role"], **block}
            for message in body["messages"]
            for block in message["content"]
        ]
    else:
        body |= {"schema": body["generationConfig"].get("responseJsonSchema")}
        fixed = ("tools", "systemInstruction", "schema")
        parts = [
            {"role": content["role"], **part}
            for content in body["contents"]
            for part in content["parts"]
        ]
    return without_marks([body.get(key) for key in fixed]), without_marks(parts)


def without_marks(value: Any) -> Any:
    if isinstance(value, list):
        return [without_marks(part) for part in value]
    if isinstance(value, dict):
        return {key: without_marks(part) for key, part in value.items() if key != "cache_control"}
    return value


def reasoner(model: BadModel, plugins: Plugins, name: str) -> LlmReasoner:
    """A reasoner that answers at the level `low` with this model."""
    environ = {
        f"LLM_{transport_key(name).upper()}_BASE_URL": model.url
        + ("/v1" if name.startswith("openai") else ""),
        "LLM_TRANSPORT": name,
        "LLM_MODEL": "model-1",
        "LLM_MAX_ATTEMPTS": "1",
    }
    settings = load_settings(environ=environ, cwd=Path(__file__).parent)
    context = Context(lambda: datetime.now(UTC), logging.getLogger("memservice"))
    return LlmReasoner(Models(settings, plugins, context, sleep=lambda seconds: None))


def looks_up(times: int) -> Callable[[ModelRequest], Say]:
    """Calls a tool so many times, then answers; at once if it is told to."""
    count = 0

    def answer(request: ModelRequest) -> Say:
        nonlocal count
        count += 1
        if count > times or ANSWER_NOW in request.text or ANSWER_AS_JSON in request.text:
            return Say((json.dumps({"answer": "Yes."}) if request.schema else "Yes.",))
        call = ToolCall(f"call-{count}", "search_memory", {"query": f"bees {count}"})
        return Say((), (call,), "tool_calls")

    return answer


def loop_bodies(plugins: Plugins, name: str, times: int, **options: Any) -> tuple[str, list[Any]]:
    """The answer, and the bodies of all requests that it took."""
    with bad_model(answer=looks_up(times)) as model:
        pieces = reasoner(model, plugins, name).answer(
            AnswerRequest(
                "Does Alice keep bees?",
                "alice",
                [conclusion_evidence("c-1", "Alice keeps bees.")],
                asker="alice",
                tools=FakeToolbox(
                    conclusion_evidence("c-1", "Alice keeps bees."),
                    conclusion_evidence("c-2", "Bob does not."),
                ),
                **options,
            )
        )
        text = "".join(piece for piece in pieces if isinstance(piece, str))
        return text, [request.body for request in model.requests]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("times", [ROUNDS, 99], ids=["ends by itself", "runs out of rounds"])
@pytest.mark.parametrize("name", WIRES)
def test_each_request_of_a_loop_begins_with_the_one_before(
    plugins: Plugins, name: str, times: int, stream: bool
) -> None:
    """Providers cache a beginning only if every byte of it is the same."""
    text, bodies = loop_bodies(plugins, name, times, stream=stream)
    assert text == "Yes."
    assert len(bodies) == min(times, 5) + 1
    for before, after in itertools.pairwise(bodies):
        fixed, parts = rendered(name, before)
        same, longer = rendered(name, after)
        assert json.dumps(fixed) == json.dumps(same)
        assert len(parts) < len(longer)
        assert json.dumps(longer).startswith(json.dumps(parts)[:-1] + ",")


def test_anthropic_reads_its_cache_from_where_the_request_before_wrote_it(
    plugins: Plugins,
) -> None:
    """And a request has at most four marks."""
    _, bodies = loop_bodies(plugins, "anthropic", 99)
    marked = []
    for body in bodies:
        blocks = [block for message in body["messages"] for block in message["content"]]
        marked.append([n for n, block in enumerate(blocks) if "cache_control" in block])
        assert "cache_control" in body["system"][-1]
        assert len(marked[-1]) + 1 <= 4
    for before, after in itertools.pairwise(marked):
        assert before[-1] in after


@pytest.mark.parametrize("times", [ROUNDS, 99], ids=["ends by itself", "runs out of rounds"])
@pytest.mark.parametrize(("name", "model"), COMBINING)
def test_a_document_ends_a_loop_with_tools(
    plugins: Plugins, monkeypatch: pytest.MonkeyPatch, name: str, model: type, times: int
) -> None:
    """Where the provider documents it: no request is made for the document alone."""
    monkeypatch.setattr(model, "documents_schema_with_tools", lambda self, model: True)
    text, bodies = loop_bodies(plugins, name, times, response_format=SCHEMA)
    assert json.loads(text) == {"answer": "Yes."}
    assert len(bodies) == min(times, 5) + 1
    assert all("tools" in body for body in bodies)
    for before, after in itertools.pairwise(bodies):
        fixed, parts = rendered(name, before)
        same, longer = rendered(name, after)
        assert json.dumps(fixed) == json.dumps(same)
        assert json.dumps(longer).startswith(json.dumps(parts)[:-1] + ",")


@pytest.mark.parametrize(
    ("name", "url", "models"),
    [
        ("openai", "https://api.openai.com/v1", {"gpt-4.1": True}),
        ("openai", "https://x.openai.azure.com/openai/deployments/d", {"d": True}),
        ("openai", "http://127.0.0.1:11434/v1", {"qwen3:8b": False}),
        ("openai-responses", "https://api.openai.com/v1", {"gpt-5.4-mini": True}),
        ("anthropic", "https://api.anthropic.com", {"claude-haiku-4-5": True}),
        ("anthropic", "http://127.0.0.1:4000", {"claude-haiku-4-5": False}),
        (
            "gemini",
            "https://generativelanguage.googleapis.com/v1beta",
            {"gemini-2.5-flash": False, "gemini-3-flash-preview": True},
        ),
    ],
)
def test_where_a_schema_and_tools_are_combined(
    open_model: OpenModel, name: str, url: str, models: dict[str, bool]
) -> None:
    model: Any = open_model(name, base_url=url)
    assert {name: model.combines_schema_with_tools(name) for name in models} == models


@pytest.mark.parametrize(("name", "model"), COMBINING)
def test_a_model_that_does_not_combine_them_is_remembered(
    plugins: Plugins, monkeypatch: pytest.MonkeyPatch, name: str, model: type
) -> None:
    """The document is then requested apart, from the next answer on without trying."""
    monkeypatch.setattr(model, "documents_schema_with_tools", lambda self, model: True)
    with bad_model("schema refused with tools") as server:
        llm = reasoner(server, plugins, name)
        for requests in (4, 3):
            server.requests.clear()
            pieces = llm.answer(
                AnswerRequest("Bees?", "alice", [], tools=FakeToolbox(), response_format=SCHEMA)
            )
            text = "".join(piece for piece in pieces if isinstance(piece, str))
            assert json.loads(text) == {"answer": "Alice keeps bees."}
            assert len(server.requests) == requests
        assert server.requests[-1].has_json_mode, "the schema itself is still used"


def test_openai_gets_a_cache_key_and_other_servers_do_not(
    plugins: Plugins, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, bodies = loop_bodies(plugins, "openai", 1)
    assert all("prompt_cache_key" not in body for body in bodies)
    for name, model in (("openai", OpenAiModel), ("openai-responses", ResponsesModel)):
        monkeypatch.setattr(model, "is_official", True)
        _, bodies = loop_bodies(plugins, name, 1)
        assert len({body["prompt_cache_key"] for body in bodies}) == 1


@pytest.mark.parametrize("times", [ROUNDS, 99], ids=["ends by itself", "runs out of rounds"])
def test_gemini_gets_results_without_text_beside_them(plugins: Plugins, times: int) -> None:
    """The API rejects such a content, and one with fewer results than calls."""
    _, bodies = loop_bodies(plugins, "gemini", times)
    for body in bodies:
        contents = [[next(iter(part)) for part in c["parts"]] for c in body["contents"]]
        for before, after in itertools.pairwise(contents):
            calls = before.count("functionCall")
            if calls:
                assert after == ["functionResponse"] * calls
            else:
                assert "functionResponse" not in after
