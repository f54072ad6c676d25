"""A language model that misbehaves on purpose: a server on loopback that speaks every
protocol, plain and streamed, and shows one of `BEHAVIOURS` by name.

    with bad_model("think") as model:
        settings = {"LLM_OPENAI_BASE_URL": f"{model.url}/v1"}

The protocol follows from the path of a request: `/v1/chat/completions` or `/v1/responses`
(OpenAI), `/v1/messages` (Anthropic) or `/models/NAME:generateContent` (Gemini). The answer of a
good model depends on the request alone, so that every task of memservice can run against it;
`answer` replaces it."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from memservice.spi.llm import ToolCall
from memservice.testing.llm import Say
from memservice.testing.model_protocols import AnthropicWire, GeminiWire, OpenAiWire, ResponsesWire
from memservice.testing.model_server import Handler, Request, Server, Wire

FORBIDDEN = "FORBIDDEN"
"""A request that contains this word is declined by the behaviour `refuses one`."""
DRAFT = "This is a draft that must not be stored"
"""Part of every text that does not belong to the answer."""
PREFACE = "Sure! Here is what you asked for:"
REFUSAL = "I'm sorry, but I can't help with that."
DETAILS: dict[str, Any] = {
    "reason": "",
    "replaces": [],
    "certainty": "hedged",
    "when": "2024-05",
    "kind": "fact",
}
"""What a statement has beside its text and its sources."""
UNKNOWN_DETAILS: dict[str, Any] = {
    "kind": "gossip",
    "when": "the other day",
    "certainty": "absolutely",
    "replaces": ["c99", "uid-1", ""],
    "reason": "because",
    "mood": "good",
}
WRONG_DETAILS: dict[str, Any] = {
    "kind": ["fact"],
    "when": {"start": 5, "end": []},
    "certainty": None,
    "replaces": {"c1": True},
    "reason": 7,
    "basis": 1,
    "confirms": {},
}
THINKING_TOKENS = 600
"""Tokens of reasoning of the behaviour `thinks within the limit`."""
CHARS_PER_TOKEN = 4
RETRY_AFTER = 90
"""Seconds in the `Retry-After` of the behaviour `429`."""
SLOW_SECONDS = 0.1

_ENTRY = re.compile(r"^\[(\d+)\] \S+ \S+ \S+ \S+ (\S+): (.*(?:\n    .*)*)", re.MULTILINE)
_SENTENCE = re.compile(r"[^.!?\n]+[.!?]?")
_ID = re.compile(r"^\[([^\]\s]+)\]", re.MULTILINE)
_SCHEMA_IN_WORDS = re.compile(r"JSON Schema:\n(\{.*)", re.DOTALL)


class ModelRequest(Struct, frozen=True):
    """A request, in the same form for each protocol."""

    wire: Wire
    body: Mapping[str, Any]
    system: str
    text: str
    """The text of the user's turns."""
    tools: Sequence[str]
    """Names of the tools."""
    schema: Mapping[str, Any] | None
    """The JSON Schema of the answer, even if it is part of a text."""
    has_json_mode: bool
    """Whether a JSON Schema, or JSON, is requested through the protocol."""
    max_tokens: int
    is_stream: bool
    has_results: bool
    """Whether there is a turn with a tool's result."""


def good_answer(request: ModelRequest) -> Say:
    """The answer of a good model: one statement for each sentence of the numbered messages, one
    conclusion in a dream, one search before an answer, and documents that fit their schema."""
    properties = (request.schema or {}).get("properties", {})
    if "statements" in properties:
        return _document({"statements": _statements(request.text)})
    if "create" in properties:
        return _document({"create": _conclusions(request.text)})
    if "searches" in properties:
        return _document({"searches": [{"query": "bees", "in": "memory"}], "done": True})
    if request.schema is not None:
        return _document(instance(request.schema))
    if "create_conclusions" in request.tools and not request.has_results:
        arguments = {"conclusions": _conclusions(request.text)}
        return _call("create_conclusions", arguments)
    if "create_conclusions" in request.tools:
        return Say(("DONE",))
    if "search_memory" in request.tools and not request.has_results:
        return _call("search_memory", {"query": "bees"})
    if "Write the summary now" in request.text:
        return Say(("Alice keeps bees. ", "Bob asked about them."))
    return Say(("Alice ", "keeps ", "bees."))


def instance(schema: Mapping[str, Any]) -> Any:
    """A value that fits a simple schema."""
    kind = schema.get("type")
    if kind == "object":
        return {name: instance(part) for name, part in schema.get("properties", {}).items()}
    if kind == "array":
        return [instance(schema.get("items", {}))]
    plain = {"boolean": True, "integer": 1, "number": 1.5, "null": None}
    return plain.get(str(kind), schema.get("enum", ["Alice keeps bees."])[0])


def _statements(text: str) -> list[dict[str, Any]]:
    return [
        {"content": f"{author}: {sentence.strip()}", "messages": [int(number)]}
        for number, author, content in _ENTRY.findall(text)
        for sentence in _SENTENCE.findall(" ".join(content.split()))
        if sentence.strip()
    ]


def _conclusions(text: str) -> list[dict[str, Any]]:
    ids = list(dict.fromkeys(_ID.findall(text)))[:2]
    return [{"content": "Alice is a beekeeper.", "level": "deductive", "source_ids": ids}]


def _document(value: Any) -> Say:
    return Say((json.dumps(value, ensure_ascii=False),))


def _call(name: str, arguments: dict[str, Any]) -> Say:
    return Say((), (ToolCall("call-1", name, arguments),), "tool_calls")


Behaviour = Callable[["BadModel", Handler, ModelRequest], None]


class BadModel:
    """A running server. `behaviour` may be changed at any time."""

    def __init__(
        self, server: Server, behaviour: str, answer: Callable[[ModelRequest], Say]
    ) -> None:
        self.behaviour = behaviour
        self.answer = answer
        self.requests: list[ModelRequest] = []
        self._server = server
        server.then(self._handle)

    @property
    def url(self) -> str:
        """The base URL; OpenAI's has `/v1` behind it."""
        return self._server.url

    def say(self, handler: Handler, request: ModelRequest, say: Say) -> None:
        """Answer as the protocol does."""
        if not request.is_stream:
            handler.json(request.wire.whole(say))
            return
        handler.begin_chunks("text/event-stream")
        for event in request.wire.events(say):
            handler.chunk(event)
        handler.end_chunks()

    def fail(
        self,
        handler: Handler,
        request: ModelRequest,
        status: int,
        message: str,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """Answer with an error."""
        handler.json(request.wire.error(status, message), status, headers)

    def _handle(self, handler: Handler, raw: Request) -> None:
        request = read_request(raw)
        self.requests.append(request)
        BEHAVIOURS[self.behaviour](self, handler, request)


@contextmanager
def bad_model(
    behaviour: str = "ok", answer: Callable[[ModelRequest], Say] = good_answer
) -> Iterator[BadModel]:
    """A model on a free port of 127.0.0.1, until the block ends."""
    server = Server()
    try:
        yield BadModel(server, behaviour, answer)
    finally:
        server.close()


def read_request(raw: Request) -> ModelRequest:
    """A request in the form that is common to all protocols."""
    body = raw.body
    if "/messages" in raw.path:
        return _anthropic(body)
    if "enerateContent" in raw.path:
        return _gemini(body, "streamGenerateContent" in raw.path)
    if raw.path.partition("?")[0].endswith("/responses"):
        return _responses(body)
    return _openai(body)


def _openai(body: Any) -> ModelRequest:
    turns = body["messages"]
    system = "\n".join(str(turn["content"]) for turn in turns if turn["role"] == "system")
    by_user = "\n\n".join(str(turn["content"]) for turn in turns if turn["role"] == "user")
    response = body.get("response_format") or {}
    return ModelRequest(
        OpenAiWire(),
        body,
        system,
        by_user,
        [tool["function"]["name"] for tool in body.get("tools", ())],
        response.get("json_schema", {}).get("schema") or _schema_in(f"{system}\n\n{by_user}"),
        bool(response),
        body.get("max_completion_tokens") or body.get("max_tokens") or 10_000,
        bool(body.get("stream")),
        any(turn["role"] == "tool" for turn in turns),
    )


def _responses(body: Any) -> ModelRequest:
    items = body["input"]
    messages = [item for item in items if item["type"] == "message"]
    system = "\n".join(
        [
            body.get("instructions", ""),
            *(item["content"] for item in messages if item["role"] == "system"),
        ]
    )
    by_user = "\n\n".join(item["content"] for item in messages if item["role"] == "user")
    answer_format = body.get("text", {}).get("format", {})
    return ModelRequest(
        ResponsesWire(),
        body,
        system,
        by_user,
        [tool["name"] for tool in body.get("tools", ())],
        answer_format.get("schema") or _schema_in(f"{system}\n\n{by_user}"),
        bool(answer_format),
        body["max_output_tokens"],
        bool(body.get("stream")),
        any(item["type"] == "function_call_output" for item in items),
    )


def _anthropic(body: Any) -> ModelRequest:
    system = "\n".join(block["text"] for block in body.get("system", ()))
    blocks = [block for turn in body["messages"] for block in turn["content"]]
    own = [
        block for turn in body["messages"] if turn["role"] == "user" for block in turn["content"]
    ]
    schema = body.get("output_config", {}).get("format", {}).get("schema")
    return ModelRequest(
        AnthropicWire(),
        body,
        system,
        "\n\n".join(block["text"] for block in own if block["type"] == "text"),
        [tool["name"] for tool in body.get("tools", ())],
        schema or _schema_in(system),
        schema is not None,
        body["max_tokens"],
        bool(body.get("stream")),
        any(block["type"] == "tool_result" for block in blocks),
    )


def _gemini(body: Any, is_stream: bool) -> ModelRequest:
    parts = [part for content in body["contents"] for part in content["parts"]]
    own = [
        part["text"]
        for content in body["contents"]
        if content["role"] == "user"
        for part in content["parts"]
        if "text" in part
    ]
    system = "\n".join(part["text"] for part in body.get("systemInstruction", {}).get("parts", ()))
    config = body.get("generationConfig", {})
    return ModelRequest(
        GeminiWire(),
        body,
        system,
        "\n\n".join(own),
        [
            declared["name"]
            for tool in body.get("tools", ())
            for declared in tool["functionDeclarations"]
        ],
        config.get("responseJsonSchema") or _schema_in(system),
        "responseMimeType" in config,
        config.get("maxOutputTokens", 10_000),
        is_stream,
        any("functionResponse" in part for part in parts),
    )


def _schema_in(text: str) -> Mapping[str, Any] | None:
    match = _SCHEMA_IN_WORDS.search(text)
    if match is None:
        return None
    schema: Mapping[str, Any] = json.JSONDecoder().raw_decode(match[1])[0]
    return schema


def _text(change: Callable[[str, ModelRequest], Say | str]) -> Behaviour:
    """A behaviour that changes texts, but not calls of tools."""

    def behave(model: BadModel, handler: Handler, request: ModelRequest) -> None:
        say = model.answer(request)
        if not say.tool_calls:
            changed = change(say.text, request)
            say = changed if isinstance(changed, Say) else Say(_pieces(changed))
        model.say(handler, request, say)

    return behave


def _json(change: Callable[[Any], str]) -> Behaviour:
    """A behaviour that changes documents, but not other texts."""
    return _text(lambda text, request: change(json.loads(text)) if request.schema else text)


def _pieces(text: str) -> list[str]:
    """The text in small pieces, so that a stream cuts every tag."""
    return [text[start : start + 5] for start in range(0, len(text), 5)] or [""]


def _fail(status: int, message: str, headers: Mapping[str, str] | None = None) -> Behaviour:
    return lambda model, handler, request: model.fail(handler, request, status, message, headers)


def _rejects(when: Callable[[ModelRequest], bool], message: str, status: int = 400) -> Behaviour:
    def behave(model: BadModel, handler: Handler, request: ModelRequest) -> None:
        if when(request):
            model.fail(handler, request, status, message)
        else:
            model.say(handler, request, model.answer(request))

    return behave


def _draft(request: ModelRequest) -> str:
    if "statements" in (request.schema or {}).get("properties", {}):
        return json.dumps({"statements": [{"content": DRAFT, "messages": [1]}]})
    return DRAFT


def _items(value: Any, change: Callable[[dict[str, Any]], Any]) -> Any:
    """A document whose lists of objects have changed items."""
    return {
        name: [change(item) if isinstance(item, dict) else item for item in part]
        if isinstance(part, list)
        else part
        for name, part in value.items()
    }


def _trailing_comma(value: Any) -> str:
    return re.sub(r"([}\]])", r",\1", json.dumps(value))


def _limited(text: str, request: ModelRequest) -> Say:
    most = request.max_tokens * CHARS_PER_TOKEN
    reason = "length" if len(text) > most else "stop"
    return Say(_pieces(text[:most]), finish_reason=reason)  # type: ignore[arg-type]


def _thinks_within(text: str, request: ModelRequest) -> Say:
    remaining = (request.max_tokens - THINKING_TOKENS) * CHARS_PER_TOKEN
    spent = min(request.max_tokens, THINKING_TOKENS)
    if remaining <= 0:
        return Say(("",), finish_reason="length", output_tokens=spent)
    return replace(_limited(text[:remaining], request), output_tokens=spent + len(text) // 4)


def _calls_as_text(write: Callable[[ToolCall], str]) -> Behaviour:
    def behave(model: BadModel, handler: Handler, request: ModelRequest) -> None:
        say = model.answer(request)
        if say.tool_calls:
            text = "".join(write(call) for call in say.tool_calls)
            say = Say(_pieces(text))
        model.say(handler, request, say)

    return behave


def _calls(change: Callable[[ToolCall], Sequence[ToolCall]]) -> Behaviour:
    def behave(model: BadModel, handler: Handler, request: ModelRequest) -> None:
        say = model.answer(request)
        calls = tuple(call for good in say.tool_calls for call in change(good))
        model.say(handler, request, replace(say, tool_calls=calls))

    return behave


def _refuses_field(model: BadModel, handler: Handler, request: ModelRequest) -> None:
    if request.is_stream:
        handler.whole(b"".join(request.wire.refusal_events()), "text/event-stream")
    else:
        handler.json(request.wire.refusal())


def _filters(model: BadModel, handler: Handler, request: ModelRequest) -> None:
    handler.json({"error": {"code": "content_filter", "message": "It was filtered"}}, 400)


def _says_null(model: BadModel, handler: Handler, request: ModelRequest) -> None:
    if request.is_stream or not isinstance(request.wire, OpenAiWire):
        model.say(handler, request, Say(("",)))
        return
    answer = request.wire.whole(Say(("",)))
    answer["choices"][0]["message"]["content"] = None
    handler.json(answer)


def _refuses_one(model: BadModel, handler: Handler, request: ModelRequest) -> None:
    if FORBIDDEN in request.text:
        _refuses_field(model, handler, request)
    else:
        model.say(handler, request, model.answer(request))


def _hangs(model: BadModel, handler: Handler, request: ModelRequest) -> None:
    handler.wait_to_be_left()


def _never_stops_calling(model: BadModel, handler: Handler, request: ModelRequest) -> None:
    say = model.answer(replace(request, has_results=False)) if request.tools else None
    model.say(handler, request, say or model.answer(request))


def _is_slow(model: BadModel, handler: Handler, request: ModelRequest) -> None:
    time.sleep(SLOW_SECONDS)
    model.say(handler, request, model.answer(request))


def _cuts_connection(model: BadModel, handler: Handler, request: ModelRequest) -> None:
    say = model.answer(request)
    handler.begin_chunks("text/event-stream" if request.is_stream else "application/json")
    if request.is_stream:
        events = list(request.wire.events(replace(say, pieces=[DRAFT * 8, DRAFT])))
        handler.chunk(b"".join(events[:2]))
    else:
        handler.chunk(json.dumps(request.wire.whole(say)).encode()[:40])
    handler.close_connection = True


def _breaks_stream(model: BadModel, handler: Handler, request: ModelRequest) -> None:
    if not request.is_stream:
        model.fail(handler, request, 500, "it broke")
        return
    handler.begin_chunks("text/event-stream")
    handler.chunk(next(iter(request.wire.events(model.answer(request)))))
    handler.chunk(request.wire.error_event())
    handler.end_chunks()


def _page(model: BadModel, handler: Handler, request: ModelRequest) -> None:
    handler.whole(b"<!doctype html><title>Sign in</title>", "text/html; charset=utf-8")


def _lacks_effort_none(request: ModelRequest) -> bool:
    return bool(request.tools) and request.body.get("reasoning_effort") != "none"


def _has_thinking_budget(request: ModelRequest) -> bool:
    return (request.body.get("thinking") or {}).get("type") == "enabled"


BEHAVIOURS: dict[str, Behaviour] = {
    "ok": _text(lambda text, request: text),
    "prose": _text(lambda text, request: f"{PREFACE}\n\n{text}\n\nAnything else?"),
    "fence": _text(
        lambda text, request: f"```json\n{text}\n```" if request.schema else text,
    ),
    "think": _text(lambda text, request: f"<think>\n{_draft(request)}\n</think>\n\n{text}"),
    "think, empty list inside": _text(
        lambda text, request: f'<think>{DRAFT}? {{"statements": []}} or []</think>\n{text}'
    ),
    "think, other tag": _text(lambda text, request: f"<reasoning>{DRAFT}</reasoning>{text}"),
    "think, unclosed": _text(
        lambda text, request: Say(_pieces(f"<think>{DRAFT} " * 3), finish_reason="length")
    ),
    "think, closing tag only": _text(
        lambda text, request: f"{_draft(request)}\n</think>\n\n{text}"
    ),
    "trailing comma": _json(_trailing_comma),
    "single quotes": _json(repr),
    "string ids": _json(
        lambda value: json.dumps(
            _items(value, lambda item: {**item, "messages": [str(n) for n in item["messages"]]})
            if "statements" in value
            else value
        )
    ),
    "bad citations": _json(
        lambda value: json.dumps(
            _items(value, lambda item: {**item, "messages": [*item["messages"], 99, -1]})
            if "statements" in value
            else value
        )
    ),
    "list of strings": _json(
        lambda value: json.dumps(
            [item["content"] for item in value["statements"]] if "statements" in value else value
        )
    ),
    "missing messages": _json(
        lambda value: json.dumps(
            _items(value, lambda item: {"content": item["content"]})
            if "statements" in value
            else value
        )
    ),
    "cut JSON": _text(
        lambda text, request: Say(_pieces(text[: int(len(text) * 0.7)]), finish_reason="length")
    ),
    "cut JSON, said to be whole": _json(lambda value: json.dumps(value)[:-3]),
    "wrong details": _json(
        lambda value: (
            json.dumps(_items(value, lambda item: item | WRONG_DETAILS))
            if "statements" in value
            else json.dumps(value)
        )
    ),
    "details first": _json(
        lambda value: (
            json.dumps(_items(value, lambda item: DETAILS | item))
            if "statements" in value
            else json.dumps(value)
        )
    ),
    "unknown details": _json(
        lambda value: (
            json.dumps(_items(value, lambda item: item | UNKNOWN_DETAILS))
            if "statements" in value
            else json.dumps(value)
        )
    ),
    "wrong schema": _json(lambda value: json.dumps({"result": "fine"})),
    "empty": _text(lambda text, request: ""),
    "null": _says_null,
    "refusal": _text(lambda text, request: REFUSAL),
    "refusal, in its field": _refuses_field,
    "content filter": _filters,
    "refuses one": _refuses_one,
    "401": _fail(401, "Incorrect API key provided"),
    "403": _fail(403, "Not allowed"),
    "404": _fail(404, "The model does not exist"),
    "429": _fail(429, "Rate limit reached", {"Retry-After": str(RETRY_AFTER)}),
    "quota": _fail(429, "You exceeded your current quota, please check your plan"),
    "500": _fail(500, "The server had an error"),
    "HTML": _page,
    "context too long": _rejects(
        lambda request: len(request.text) > 8_000,
        "This model's maximum context length is 2048 tokens",
    ),
    "no tools": _rejects(
        lambda request: bool(request.tools), "registry/library/gemma:2b does not support tools"
    ),
    "no tools, without the flag": _rejects(
        lambda request: bool(request.tools),
        '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
    ),
    "no schema": _rejects(
        lambda request: request.has_json_mode,
        "response_format, text.format, output_config and responseMimeType are not supported",
    ),
    "call written as text, Hermes": _calls_as_text(
        lambda call: (
            "<tool_call>\n"
            + json.dumps({"name": call.name, "arguments": call.arguments})
            + "\n</tool_call>"
        )
    ),
    "call written as text, Llama": _calls_as_text(
        lambda call: json.dumps({"name": call.name, "parameters": call.arguments})
    ),
    "call written as text, Mistral": _calls_as_text(
        lambda call: "[TOOL_CALLS]" + json.dumps([{"name": call.name, "arguments": call.arguments}])
    ),
    "40 calls": _calls(lambda call: [replace(call, id=f"call-{n}") for n in range(40)]),
    "wrong tools": _calls(lambda call: [replace(call, name="launch_rocket")]),
    "never stops calling": _never_stops_calling,
    "wrong arguments": _calls(lambda call: [replace(call, arguments={"depth": []})]),
    "NaN as an argument": _calls(
        lambda call: [replace(call, arguments={**call.arguments, "limit": float("nan")})]
    ),
    "hang": _hangs,
    "slow": _is_slow,
    "cut connection": _cuts_connection,
    "error in stream": _breaks_stream,
    "schema refused with tools": _rejects(
        lambda request: bool(request.tools) and request.has_json_mode,
        "Function calling with a response mime type: 'application/json' is unsupported",
    ),
    "effort refused with tools": _rejects(
        _lacks_effort_none,
        "Function tools with reasoning_effort are not supported for this model in "
        "/v1/chat/completions. Please use /v1/responses instead.",
    ),
    "adaptive thinking only": _rejects(
        _has_thinking_budget,
        '"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" '
        'and "output_config.effort" to control thinking behavior.',
    ),
    "obeys max_tokens": _text(_limited),
    "thinks within the limit": _text(_thinks_within),
}
"""Behaviour by name. Those that change a text do not change calls of tools."""
