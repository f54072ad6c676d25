"""Exchanges of a loop with tools, in every protocol: what is cached, counted and waited for."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import pytest

from memservice.spi.llm import Completion, ModelFailure
from memservice.testing.llm import Say, ask
from memservice.testing.model_protocols import AnthropicWire, GeminiWire, OpenAiWire, ResponsesWire
from memservice.testing.model_server import Answer, Handler, Request, Server, Wire
from support.models.fixtures import OpenModel

WIRES: dict[str, Wire] = {
    "openai": OpenAiWire(),
    "openai-responses": ResponsesWire(),
    "anthropic": AnthropicWire(),
    "gemini": GeminiWire(),
}
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
