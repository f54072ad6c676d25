"""The requests of each protocol, and how they adapt to a server that supports less of it."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from memservice.domain.errors import ConfigurationError
from memservice.plugins import Plugins
from memservice.spi.llm import Completion, LanguageModel, ModelFailure, ToolCall, Turn
from memservice.spi.providers import Context
from memservice.testing.llm import SCHEMA, TOOLS, Say, ask
from memservice.testing.model_protocols import AnthropicWire, GeminiWire, OpenAiWire
from memservice.testing.model_server import KEY, Answer, Handler, Request, Server, Wire
from memservice_http.sse import data_of
from support.models.fixtures import OpenModel

WIRES: dict[str, Wire] = {
    "openai": OpenAiWire(),
    "anthropic": AnthropicWire(),
    "gemini": GeminiWire(),
}
ANSWER = Say(('{"answer": "yes"}',))


def lacks(name: str, *complaints: tuple[str, str]) -> Answer:
    """A server that refuses requests in which the first text occurs, with the second one as its
    message."""

    def answer(handler: Handler, request: Request) -> None:
        text = request.raw.decode()
        for part, message in complaints:
            if part in text:
                handler.json({"error": {"message": message}}, 400)
                return
        handler.json(WIRES[name].whole(ANSWER))

    return answer


def saying(body: Any) -> Answer:
    return lambda handler, request: handler.json(body)


def bodies(server: Server) -> list[Any]:
    return [request.body for request in server.requests]


@pytest.mark.parametrize(
    ("name", "complaints", "tries"),
    [
        (
            "openai",
            [("json_schema", "This model does not support response format `json_schema`")],
            2,
        ),
        ("openai", [("response_format", "extra fields not permitted: response_format")], 3),
        ("anthropic", [("output_config", "output_config: Extra inputs are not permitted")], 2),
        (
            "gemini",
            [
                (
                    "responseJsonSchema",
                    'Unknown name "responseJsonSchema" at generation_config: Cannot find field.',
                )
            ],
            2,
        ),
        (
            "gemini",
            [("responseMimeType", "JSON mode is not enabled for this model (responseMimeType)")],
            3,
        ),
    ],
)
def test_a_schema_is_sent_in_the_best_supported_way(
    server: Server, open_model: OpenModel, name: str, complaints: list[tuple[str, str]], tries: int
) -> None:
    """And for each model it is remembered which that is."""
    server.then(lacks(name, *complaints))
    model = open_model(name)
    assert model.complete(ask(response_schema=SCHEMA)).content == '{"answer": "yes"}'
    assert len(server.requests) == tries
    model.complete(ask(response_schema=SCHEMA))
    assert len(server.requests) == tries + 1, "remembered"
    assert "JSON Schema" in server.requests[-1].raw.decode(), (
        "what the protocol does not carry is said in words"
    )
    model.complete(ask(response_schema=SCHEMA, model="model-2"))
    assert len(server.requests) == 2 * tries + 1, "of this model only"


def test_a_refused_schema_does_not_disable_schemas_for_the_model(
    server: Server, open_model: OpenModel
) -> None:
    server.then(lacks("openai", ('"odd"', "Invalid schema for response_format 'answer'")))
    model = open_model("openai")
    model.complete(ask(response_schema={"type": "object", "properties": {"odd": {}}}))
    model.complete(ask(response_schema=SCHEMA))
    assert bodies(server)[-1]["response_format"]["type"] == "json_schema"


def test_a_setting_selects_the_first_way(server: Server, open_model: OpenModel) -> None:
    server.then(lacks("openai"))
    open_model("openai").complete(
        ask(response_schema=SCHEMA, options={"structured_output_mode": "json_object"})
    )
    assert bodies(server)[0]["response_format"] == {"type": "json_object"}


@pytest.mark.parametrize(
    "schema",
    [SCHEMA, {"type": "object", "properties": {"a": {"type": "string"}}}],
    ids=["closed", "open"],
)
def test_openai_guarantees_only_closed_schemas(
    server: Server, open_model: OpenModel, schema: dict[str, Any]
) -> None:
    server.then(lacks("openai"))
    open_model("openai").complete(ask(response_schema=schema))
    assert bodies(server)[0]["response_format"]["json_schema"]["strict"] == (schema is SCHEMA)


def test_the_name_of_the_token_limit_is_detected(server: Server, open_model: OpenModel) -> None:
    complaint = (
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use "
        "'max_completion_tokens' instead."
    )
    server.then(lacks("openai", ('"max_tokens"', complaint)))
    model = open_model("openai")
    model.complete(ask())
    model.complete(ask())
    assert [
        ("max_tokens" in body, body.get("max_completion_tokens")) for body in bodies(server)
    ] == [
        (True, None),
        (False, 500),
        (False, 500),
    ]


def test_a_wrong_value_does_not_count_as_an_unknown_field(
    server: Server, open_model: OpenModel
) -> None:
    server.then(
        lacks(
            "openai",
            ('"max_tokens"', "max_tokens is too large: 500. This model supports at most 100"),
        )
    )
    with pytest.raises(ModelFailure, match="status 400") as caught:
        open_model("openai").complete(ask())
    assert (type(caught.value), len(server.requests)) == (ModelFailure, 1)


def test_fields_that_reasoning_models_reject_are_left_out(
    server: Server, open_model: OpenModel
) -> None:
    complaint = (
        "Unsupported value: 'temperature' does not support 0.3 with this model. Only the "
        "default (1) value is supported."
    )
    server.then(lacks("openai", ('"temperature"', complaint)))
    open_model("openai").complete(
        ask(temperature=0.3, options={"top_p": 0.5, "thinking_effort": "max"})
    )
    assert [body.get("temperature") for body in bodies(server)] == [0.3, None]
    assert (bodies(server)[-1]["top_p"], bodies(server)[-1]["reasoning_effort"]) == (0.5, "xhigh")


def continued(model: LanguageModel, options: dict[str, Any]) -> None:
    first = model.complete(ask(tools=TOOLS, options=options))
    results = [Turn("tool", "it is noon", tool_call_id=call.id) for call in first.tool_calls]
    model.complete(
        ask(
            tools=TOOLS,
            options=options,
            turns=(*ask().turns, Turn("assistant", "", first.tool_calls), *results),
        )
    )


CALL = Say((), (ToolCall("call-1", "clock", {}), ToolCall("call-2", "clock", {})), "tool_calls")


def test_anthropic_gets_its_reasoning_back(server: Server, open_model: OpenModel) -> None:
    server.then(lambda handler, request: handler.json(AnthropicWire().whole(CALL)))
    continued(open_model("anthropic"), {"thinking_budget_tokens": 2048})
    first, second = bodies(server)
    assert first["thinking"] == second["thinking"] == {"type": "enabled", "budget_tokens": 2048}
    assert first["max_tokens"] == 500 + 2048
    kinds = [block["type"] for block in second["messages"][1]["content"]]
    assert kinds == ["thinking", "tool_use", "tool_use"]
    assert second["messages"][1]["content"][0]["signature"] == "sig-1"
    assert [block["type"] for block in second["messages"][2]["content"]] == [
        "tool_result",
        "tool_result",
    ], "all in one message"


def test_anthropic_does_not_reason_if_the_api_forbids_it(
    server: Server, open_model: OpenModel
) -> None:
    server.then(lambda handler, request: handler.json(AnthropicWire().whole(Say())))
    model = open_model("anthropic")
    thinking = {"thinking_budget_tokens": 2048}
    model.complete(ask(tools=TOOLS, tool_choice="find", options=thinking))
    foreign = (
        *ask().turns,
        Turn("assistant", "", (ToolCall("c", "clock", {}),)),
        Turn("tool", "noon", tool_call_id="c"),
    )
    model.complete(ask(tools=TOOLS, turns=foreign, options=thinking))
    carried = ToolCall("c", "clock", {}, {"reasoning": [{"type": "reasoning"}]})
    signed = (*ask().turns, Turn("assistant", "", (carried,)), foreign[-1])
    model.complete(ask(tools=TOOLS, turns=signed, options=thinking))
    assert ["thinking" in body for body in bodies(server)] == [False, False, False]


def test_gemini_gets_its_signature_back(server: Server, open_model: OpenModel) -> None:
    server.then(lambda handler, request: handler.json(GeminiWire().whole(CALL)))
    continued(open_model("gemini"), {"thinking_effort": "low"})
    call, results = bodies(server)[1]["contents"][1:]
    assert [part.get("thoughtSignature") for part in call["parts"]] == ["c2ln", None]
    assert [part["functionResponse"]["name"] for part in results["parts"]] == ["clock", "clock"]
    assert bodies(server)[0]["generationConfig"]["thinkingConfig"] == {"thinkingLevel": "low"}


def test_rounds_with_tools_are_cached_unless_a_policy_forbids_it(
    server: Server, open_model: OpenModel
) -> None:
    server.then(lacks("anthropic"))
    model = open_model("anthropic")
    call = ToolCall("call-1", "clock", {})
    results = (Turn("assistant", "", [call]), Turn("tool", "noon", tool_call_id="call-1"))
    model.complete(ask(tools=TOOLS))
    model.complete(ask(tools=TOOLS, turns=(*ask().turns, *results)))
    model.complete(ask())
    model.complete(ask(tools=TOOLS, options={"cache_policy": {"mode": "none"}}))
    first, second, plain, forbidden = bodies(server)
    for body in (first, second):
        assert body["system"][-1]["cache_control"] == {"type": "ephemeral"}
    marked = [
        [
            (number, message["role"])
            for number, message in enumerate(body["messages"])
            if "cache_control" in message["content"][-1]
        ]
        for body in (first, second)
    ]
    assert marked == [[(0, "user")], [(0, "user"), (2, "user")]]
    assert "cache_control" not in str((plain, forbidden))


def test_prompts_are_cached_on_request(server: Server, open_model: OpenModel) -> None:
    server.then(lambda handler, request: handler.json(AnthropicWire().whole(Say())))
    model = open_model("anthropic")
    model.complete(ask(options={"cache_policy": {"mode": "auto", "ttl_seconds": 3600}}))
    model.complete(ask())
    cached, plain = bodies(server)
    assert cached["system"][-1]["cache_control"] == {"type": "ephemeral", "ttl": "1h"}
    assert "cache_control" not in str(plain)


@pytest.mark.parametrize(
    ("name", "path", "expected"),
    [
        ("openai", "/v1", "/v1/chat/completions"),
        (
            "openai",
            "/openai/deployments/d?api-version=1",
            "/openai/deployments/d/chat/completions?api-version=1",
        ),
        ("anthropic", "", "/v1/messages"),
        ("anthropic", "/proxy/v1/", "/proxy/v1/messages"),
        ("gemini", "", "/v1beta/models/model-1:generateContent"),
        ("gemini", "/v1", "/v1/models/model-1:generateContent"),
    ],
)
def test_a_base_url_is_accepted_in_every_spelling(
    server: Server, open_model: OpenModel, name: str, path: str, expected: str
) -> None:
    server.then(lacks(name))
    open_model(name, path).complete(ask())
    assert server.requests[0].path == expected


@pytest.mark.parametrize(
    ("name", "header", "value"),
    [
        ("openai", "authorization", f"Bearer {KEY}"),
        ("anthropic", "x-api-key", KEY),
        ("gemini", "x-goog-api-key", KEY),
    ],
)
def test_extra_fields_are_sent_with_each_call(
    server: Server, open_model: OpenModel, name: str, header: str, value: str
) -> None:
    server.then(lacks(name))
    extras = {
        "extra_body": {"mine": {"a": 1}},
        "extra_headers": {"X-Title": "t"},
        "extra_query": {"api-version": "2"},
    }
    open_model(name, **extras).complete(ask())
    request = server.requests[0]
    assert (request.headers[header], request.headers["x-title"], request.body["mine"]) == (
        value,
        "t",
        {"a": 1},
    )
    assert "api-version=2" in request.path
    assert KEY not in request.path


def test_a_self_hosted_server_needs_no_key(server: Server, open_model: OpenModel) -> None:
    server.then(lacks("openai"))
    open_model("openai", api_key=None).complete(ask())
    assert "authorization" not in server.requests[0].headers


@pytest.mark.parametrize("name", ["openai", "anthropic", "gemini"])
def test_the_error_for_a_model_without_key_and_url_says_what_to_set(
    plugins: Plugins, context: Context, name: str
) -> None:
    with pytest.raises(ConfigurationError, match=f"LLM_{name.upper()}_API_KEY"):
        plugins.open_provider(plugins.language_model(name), {}, context)
    with pytest.raises(ConfigurationError, match="http:// or https://"):
        plugins.open_provider(
            plugins.language_model(name), {"base_url": "localhost:11434"}, context
        )


def test_the_pause_is_read_in_milliseconds_and_from_the_body(
    server: Server, open_model: OpenModel
) -> None:
    server.then(lambda handler, request: handler.json({}, 429, {"retry-after-ms": "2500"}))
    with pytest.raises(ModelFailure) as caught:
        open_model("openai").complete(ask())
    assert caught.value.retry_after == 2.5
    delay = {
        "error": {
            "code": 429,
            "status": "RESOURCE_EXHAUSTED",
            "details": [{"@type": "x/google.rpc.RetryInfo", "retryDelay": "12s"}],
        }
    }
    server.then(lambda handler, request: handler.json(delay, 429))
    with pytest.raises(ModelFailure, match="RESOURCE_EXHAUSTED") as caught:
        open_model("gemini").complete(ask())
    assert caught.value.retry_after == 12


def test_arguments_that_are_not_json_are_retryable(server: Server, open_model: OpenModel) -> None:
    call = {
        "id": "c",
        "type": "function",
        "function": {"name": "find", "arguments": '{"query": "te'},
    }
    for reason, retryable in (("tool_calls", True), ("length", False)):
        answer = {
            "choices": [
                {"message": {"content": None, "tool_calls": [call]}, "finish_reason": reason}
            ]
        }
        server.then(saying(answer))
        with pytest.raises(ModelFailure) as caught:
            open_model("openai").complete(ask(tools=TOOLS))
        assert caught.value.retryable == retryable


def test_a_redirect_is_not_followed(server: Server, open_model: OpenModel) -> None:
    server.then(
        lambda handler, request: handler.json({}, 307, {"Location": server.url + "/elsewhere"})
    )
    with pytest.raises(ModelFailure, match="redirects are not followed"):
        open_model("openai").complete(ask())
    assert len(server.requests) == 1


def test_a_refused_connection_is_retryable(open_model: OpenModel) -> None:
    with pytest.raises(ModelFailure, match="cannot be reached") as caught:
        open_model("openai", base_url="http://127.0.0.1:9").complete(ask())
    assert caught.value.retryable


def test_exchanges_share_the_thread_of_their_deadlines(
    server: Server, open_model: OpenModel
) -> None:
    server.then(lacks("openai"))
    model = open_model("openai")
    for _ in range(5):
        assert isinstance(model.complete(ask()), Completion)
    names = [thread.name for thread in threading.enumerate()]
    assert names.count("model-deadlines") == 1


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_events_are_read_at_any_chunk_boundary(size: int) -> None:
    stream = (
        '\ufeff: hello\r\nevent: x\r\ndata: {"a":\r\ndata: '
        '"\u2028\u0085é"}\r\n\r\ndata:two\n\n: end\n\nid: 3\ndata: three'
    ).encode()
    chunks = [stream[start : start + size] for start in range(0, len(stream), size)]
    assert list(data_of(chunks)) == ['{"a":\n"\u2028\u0085é"}'.encode(), b"two", b"three"]
