"""OpenAI's Responses API: the shape of requests, answers that other protocols do not have, and
which models use it by default."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import memservice_openai
from memservice.plugins import Plugins, load_plugins
from memservice.reasoning.models import target
from memservice.reasoning.warnings import warnings
from memservice.settings import load_settings
from memservice.spi.llm import (
    Completion,
    LanguageModel,
    ModelFailure,
    Refusal,
    ToolCall,
    Turn,
)
from memservice.spi.providers import Context
from memservice.testing.llm import SCHEMA, TOOLS, Say, ask
from memservice.testing.model_protocols import OpenAiWire, ResponsesWire
from memservice.testing.model_server import KEY, Answer, Handler, Request, Server, sse
from support.models.fixtures import OpenModel

FIELDS = {
    *("model", "input", "instructions", "max_output_tokens", "reasoning", "tools", "tool_choice"),
    *("text", "store", "include", "stream", "temperature", "top_p", "prompt_cache_key"),
    "prompt_cache_retention",
}
"""Fields of the API that memservice sends."""
ITEMS = {
    "message": {"type", "role", "content"},
    "function_call": {"type", "call_id", "name", "arguments"},
    "function_call_output": {"type", "call_id", "output"},
    "reasoning": {"type", "id", "summary", "encrypted_content"},
}
TOOL_FIELDS = {"type", "name", "description", "parameters", "strict"}
CALLS = (ToolCall("call-1", "clock", {}), ToolCall("call-2", "clock", {}))
WIRE = ResponsesWire()


@pytest.fixture
def model(server: Server, open_model: OpenModel) -> LanguageModel:
    server.then(strict(Say()))
    return open_model("openai-responses", "/v1")


def strict(say: Say) -> Answer:
    """A server that rejects what the API does not have, in its words."""

    def answer(handler: Handler, request: Request) -> None:
        body = request.body
        unknown = set(body) - FIELDS
        for item in body["input"]:
            unknown |= set(item) - ITEMS[item["type"]]
        for tool in body.get("tools", ()):
            unknown |= set(tool) ^ TOOL_FIELDS
        if unknown:
            message = f"Unknown parameter: '{min(unknown)}'."
            handler.json(WIRE.error(400, message), 400)
        elif body["max_output_tokens"] < 16:
            handler.json(WIRE.error(400, "Invalid 'max_output_tokens': below 16"), 400)
        else:
            handler.json(WIRE.whole(say))

    return answer


def bodies(server: Server) -> list[Any]:
    return [request.body for request in server.requests]


def test_a_request_has_the_form_of_the_api(server: Server, model: LanguageModel) -> None:
    options = {
        "thinking_effort": "max",
        "cache_policy": {"ttl_seconds": 7200, "key_version": "k"},
    }
    model.complete(ask(tools=TOOLS, tool_choice="find", response_schema=SCHEMA, options=options))
    (request,) = server.requests
    assert request.path == "/v1/responses"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.body == {
        "model": "model-1",
        "instructions": "You are brief.",
        "input": [{"type": "message", "role": "user", "content": "How are you?"}],
        "max_output_tokens": 500,
        "reasoning": {"effort": "xhigh"},
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "prompt_cache_key": "k",
        "prompt_cache_retention": "24h",
        "tools": [
            {
                "type": "function",
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.parameters,
                "strict": False,
            }
            for tool in TOOLS
        ],
        "tool_choice": {"type": "function", "name": "find"},
        "text": {
            "format": {"type": "json_schema", "name": "answer", "schema": SCHEMA, "strict": True}
        },
    }


def test_a_short_limit_is_raised_to_the_smallest_that_the_api_accepts(
    server: Server, model: LanguageModel
) -> None:
    model.complete(ask(max_output_tokens=5))
    assert bodies(server)[0]["max_output_tokens"] == 16


def test_reasoning_is_sent_again_with_the_results(server: Server, model: LanguageModel) -> None:
    server.then(strict(Say((), CALLS, "tool_calls")))
    completion = model.complete(ask(tools=TOOLS))
    results = [Turn("tool", "noon", tool_call_id=c.id) for c in completion.tool_calls]
    turns = (*ask().turns, Turn("assistant", "Let me see.", completion.tool_calls), *results)
    model.complete(ask(tools=TOOLS, turns=turns))
    items = bodies(server)[-1]["input"]
    assert [item["type"] for item in items] == [
        *("message", "message", "reasoning", "function_call", "function_call"),
        *("function_call_output", "function_call_output"),
    ]
    assert items[2] == {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [],
        "encrypted_content": "gAAA",
    }
    assert [item["call_id"] for item in items[3:]] == ["call-1", "call-2"] * 2


def test_data_of_another_protocol_is_left_out(server: Server, model: LanguageModel) -> None:
    for carried in ("c2ln", [{"type": "thinking", "thinking": "Hm."}]):
        call = ToolCall("c", "clock", {}, carried)
        turns = (*ask().turns, Turn("assistant", "", [call]), Turn("tool", "1", tool_call_id="c"))
        model.complete(ask(tools=TOOLS, turns=turns))
        kinds = [item["type"] for item in bodies(server)[-1]["input"]]
        assert kinds == ["message", "function_call", "function_call_output"]


def test_a_model_that_does_not_reason_gets_no_reasoning(
    server: Server, model: LanguageModel
) -> None:
    def answer(handler: Handler, request: Request) -> None:
        if "encrypted_content" in request.raw.decode():
            message = "Encrypted content is not supported with this model."
            handler.json(WIRE.error(400, message), 400)
        else:
            handler.json(WIRE.whole(Say()))

    server.then(answer)
    reasoning = {name: value for name, value in WIRE.REASONING.items() if value is not None}
    call = ToolCall("c", "clock", {}, {"reasoning": [reasoning]})
    turns = (*ask().turns, Turn("assistant", "", [call]), Turn("tool", "1", tool_call_id="c"))
    model.complete(ask(tools=TOOLS, turns=turns))
    model.complete(ask(tools=TOOLS))
    assert ["include" in body for body in bodies(server)] == [True, False, False]


def test_an_option_that_the_api_does_not_have_is_left_out_with_a_warning(
    server: Server, model: LanguageModel, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(2):
        model.complete(ask(options={"stop_sequences": ["END"], "seed": 7, "top_p": 0.5}))
    assert len(server.requests) == 4, "remembered"
    assert bodies(server)[-1]["top_p"] == 0.5
    assert "stop_sequences" in caplog.text
    assert "seed" in caplog.text


def test_in_json_mode_the_input_contains_the_word_json(
    server: Server, model: LanguageModel
) -> None:
    """The API rejects a request whose input does not; it does not look at the instructions."""
    model.complete(ask(response_schema=SCHEMA, options={"structured_output_mode": "json_object"}))
    (body,) = bodies(server)
    assert body["text"] == {"format": {"type": "json_object"}}
    assert "instructions" not in body
    assert "JSON Schema" in body["input"][0]["content"]
    assert body["input"][0]["role"] == "system"


@pytest.mark.parametrize("way", ["complete", "stream"])
@pytest.mark.parametrize(
    ("changes", "failure", "retryable"),
    [
        ({"status": "failed", "error": {"code": "server_error"}}, ModelFailure, True),
        ({"status": "failed", "error": None}, ModelFailure, True),
        ({"status": "in_progress"}, ModelFailure, True),
        (
            {"status": "incomplete", "incomplete_details": {"reason": "content_filter"}},
            Refusal,
            False,
        ),
    ],
)
def test_an_unusable_response_raises(
    server: Server,
    model: LanguageModel,
    way: str,
    changes: dict[str, Any],
    failure: type[ModelFailure],
    retryable: bool,
) -> None:
    response = {**WIRE.whole(Say()), **changes}
    kind = {"failed": "failed", "incomplete": "incomplete"}.get(response["status"], "completed")
    last = sse({"type": f"response.{kind}", "response": response})

    def answer(handler: Handler, request: Request) -> None:
        if way == "stream":
            handler.whole(last, "text/event-stream")
        else:
            handler.json(response)

    server.then(answer)
    with pytest.raises(ModelFailure) as caught:
        list(model.stream(ask())) if way == "stream" else model.complete(ask())
    assert (type(caught.value), caught.value.retryable) == (failure, retryable)


def test_a_stream_of_whole_items_loses_nothing(server: Server, model: LanguageModel) -> None:
    """Some servers send no deltas."""
    response = WIRE.whole(Say(("All well.",), CALLS[:1], "tool_calls"))
    events = [
        sse({"type": "response.output_item.done", "output_index": index, "item": item})
        for index, item in enumerate(response["output"])
    ]
    last = sse({"type": "response.completed", "response": {**response, "output": []}})
    server.then(
        lambda handler, request: handler.whole(b"".join([*events, last]), "text/event-stream")
    )
    piece, done = model.stream(ask(tools=TOOLS))
    assert isinstance(done, Completion)
    assert (piece, done.content) == ("All well.", "All well.")
    assert [(c.name, c.carried is not None) for c in done.tool_calls] == [("clock", True)]
    assert (done.reasoning_tokens, done.finish_reason) == (2, "tool_calls")


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("gpt-5.4-mini", "/v1/responses"),
        ("gpt-5", "/v1/responses"),
        ("ft:gpt-6-mini:me", "/v1/responses"),
        ("gpt-10", "/v1/responses"),
        ("gpt-4.1", "/v1/chat/completions"),
        ("o3", "/v1/chat/completions"),
        ("gpt-oss:20b", "/v1/chat/completions"),
        ("gpt-5-search-api", "/v1/chat/completions"),
    ],
)
def test_newer_models_of_openai_use_responses(
    server: Server,
    plugins: Plugins,
    context: Context,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    path: str,
) -> None:
    monkeypatch.setattr(memservice_openai, "BASE_URL", f"{server.url}/v1")
    wire = ResponsesWire() if path.endswith("responses") else OpenAiWire()
    server.then(lambda handler, request: handler.json(wire.whole(Say())))
    model = plugins.open_provider(plugins.language_model("openai"), {"api_key": KEY}, context)
    assert model.complete(ask(model=name)).content == "All is well."
    assert server.requests[0].path == path
    assert model.lacks(name) == frozenset()


@pytest.mark.parametrize("setting", ["base_url", "extra_body"])
def test_a_base_url_or_an_extra_body_keeps_chat_completions(
    server: Server,
    plugins: Plugins,
    context: Context,
    monkeypatch: pytest.MonkeyPatch,
    setting: str,
) -> None:
    monkeypatch.setattr(memservice_openai, "BASE_URL", f"{server.url}/v1")
    server.then(lambda handler, request: handler.json(OpenAiWire().whole(Say())))
    extra = {"base_url": f"{server.url}/v1", "extra_body": {"service_tier": "flex"}}[setting]
    options = {"api_key": KEY, setting: extra}
    model = plugins.open_provider(plugins.language_model("openai"), options, context)
    model.complete(ask(model="gpt-5"))
    assert server.requests[0].path == "/v1/chat/completions"


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"LLM_OPENAI_API_KEY": "k"}, ("k", None)),
        (
            {"LLM_OPENAI_API_KEY": "k", "LLM_OPENAI_BASE_URL": "http://h/v1"},
            ("k", "http://h/v1"),
        ),
        (
            {"LLM_OPENAI_API_KEY": "k", "LLM_OPENAI_RESPONSES_BASE_URL": "http://own/v1"},
            (None, "http://own/v1"),
        ),
    ],
)
def test_the_key_and_the_url_of_openai_serve_both_transports(
    tmp_path: Path, environ: dict[str, str], expected: tuple[str | None, str | None]
) -> None:
    """But a key never goes to a URL of the other one."""
    environ |= {"LLM_TRANSPORT": "openai-responses", "LLM_MODEL": "gpt-5"}
    settings = load_settings(environ=environ, cwd=tmp_path)
    plugins = load_plugins(settings)
    connection = target(settings.llm, settings.deriver.model_config, plugins).connection
    assert (connection["api_key"], connection["base_url"]) == expected
    if "LLM_OPENAI_RESPONSES_BASE_URL" not in environ:
        assert warnings(settings, plugins) == [], "the key of openai is in use"
