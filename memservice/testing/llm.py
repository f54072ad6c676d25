"""The contract of a language model: subclass `LanguageModelContract` and give it the fixture
`peer`."""

from __future__ import annotations

import json
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any, Literal, Protocol

import pytest
from msgspec import Struct

from memservice.spi.llm import (
    Completion,
    CompletionRequest,
    LanguageModel,
    ModelFailure,
    Refusal,
    Tool,
    ToolCall,
    Turn,
)

Fault = Literal[
    "hang", "drip", "drip head", "cut", "garbage", "html", "huge", "refuse", "error in stream"
]

SECRET = "a secret that was told to the model"
PATIENCE = 1.5
"""Seconds that a model may wait in these tests for a peer that never answers."""
SLACK = 7.0
"""Seconds by which a busy machine may be late."""

TEXTS = (
    "plain",
    "",
    "Grüße, 世界 🧺",
    'line\nbreak\r\n\ttab "quoted" \\ \u2028 \u0085 \u2029',
    "data: [DONE]\n\n",
    "x" * 100_000,
)

TOOLS = (
    Tool(
        "find",
        "Finds notes.",
        {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
    ),
    Tool("clock", "Tells the time.", {"type": "object", "properties": {}}),
)
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"answer": {"type": "string"}},
    "required": ["answer"],
    "additionalProperties": False,
}


class Say(Struct, frozen=True):
    """An answer that the peer gives in the form of its protocol."""

    pieces: Sequence[str] = ("All ", "is ", "well.")
    """The text; streamed, each of these is sent by itself."""
    tool_calls: Sequence[ToolCall] = ()
    """Streamed, their arguments are sent in fragments, if the protocol has them."""
    finish_reason: Literal["stop", "length", "tool_calls"] = "stop"
    input_tokens: int = 110
    """All of them, those from the cache among them."""
    output_tokens: int = 7
    cache_read_tokens: int = 64
    reasoning_tokens: int = 2
    """Of the output tokens, where the protocol counts them in every answer; the others count them
    if there are more."""
    gate: threading.Event | None = None
    """Streamed, what follows the first piece is sent only when this is set, or after ten
    seconds."""

    @property
    def text(self) -> str:
        return "".join(self.pieces)


class Peer(Protocol):
    """A model, and the scripted server that it calls over a real connection."""

    model: LanguageModel
    key: str
    """The key that the model was opened with. It must appear nowhere."""
    cannot: frozenset[str]
    """Faults that this protocol cannot have, and `is_wanted` if the provider ignores it."""
    counts_cache: bool
    """Whether the protocol reports tokens that were read from a cache."""

    def says(self, *answers: Say) -> None:
        """Give these, in order, to the next requests; the last one from then on."""
        ...

    def echoes(self) -> None:
        """From now on answer each request with the text of its last turn."""
        ...

    def fails(self, status: int, headers: Mapping[str, str] | None = None) -> None:
        """From now on answer with this status, and a body that quotes the key and the request."""
        ...

    def misbehaves(self, fault: Fault) -> None:
        """From now on: `hang` takes requests and never answers; `drip` sends an answer of a byte at
        a time that never ends, and `drip head` such a head; `cut` ends the connection after the
        first half of an answer; `garbage` is an answer of the right type that is not JSON; `html` a
        page; `huge` an answer without end; `refuse` a refusal by the model; `error in stream` an
        error of the server's after the first piece."""
        ...

    def received(self) -> Sequence[str]:
        """The bodies of the requests so far, with unescaped text."""
        ...

    def was_left(self, timeout: float) -> bool:
        """Wait at most `timeout` seconds until the model ends a connection during an answer."""
        ...


def ask(text: str = "How are you?", **changes: Any) -> CompletionRequest:
    completion_request = CompletionRequest(
        model="model-1",
        turns=(Turn("system", "You are brief."), Turn("user", text)),
        max_output_tokens=500,
        timeout=20.0,
    )
    return replace(completion_request, **changes)


def whole(pieces: Iterator[str | Completion]) -> tuple[list[str], Completion]:
    """The pieces of a stream, and the completion, which has to be its last and only one."""
    *texts, completion = list(pieces)
    assert isinstance(completion, Completion), "a stream ends with the whole Completion"
    assert all(isinstance(text, str) for text in texts), "there is one Completion, and it is last"
    return [str(text) for text in texts], completion


class LanguageModelContract:
    """The requirements of a language model."""

    @pytest.fixture
    def peer(self) -> Peer:
        raise NotImplementedError(
            "give your subclass of LanguageModelContract a fixture `peer` that returns a Peer"
        )

    def _misbehave(self, peer: Peer, fault: Fault) -> None:
        if fault in peer.cannot:
            pytest.skip(f"this protocol cannot have the fault {fault!r} (Peer.cannot)")
        peer.misbehaves(fault)

    def _failure(
        self, peer: Peer, way: str, request: CompletionRequest | None = None
    ) -> ModelFailure:
        """The failure that a call raises. `way`: `complete` or `stream`."""
        completion_request = request or ask(SECRET)
        with pytest.raises(ModelFailure) as caught:
            if way == "complete":
                peer.model.complete(completion_request)
            else:
                list(peer.model.stream(completion_request))
        return caught.value

    @pytest.mark.parametrize(
        "text", TEXTS, ids=["plain", "empty", "scripts", "breaks", "marker", "long"]
    )
    def test_an_answer_arrives_unchanged(self, peer: Peer, text: str) -> None:
        peer.says(Say((text,)))
        completion = peer.model.complete(ask())
        assert (completion.content, tuple(completion.tool_calls)) == (text, ())

    @pytest.mark.parametrize(
        "text", TEXTS, ids=["plain", "empty", "scripts", "breaks", "marker", "long"]
    )
    def test_a_streamed_answer_is_the_sum_of_its_pieces(self, peer: Peer, text: str) -> None:
        half = len(text) // 2
        peer.says(Say((text[:half], text[half:])))
        pieces, completion = whole(peer.model.stream(ask()))
        assert "".join(pieces) == completion.content == text
        assert "" not in pieces

    def test_the_whole_request_arrives(self, peer: Peer) -> None:
        turns = (
            Turn("system", "You are ‘brief’."),
            Turn("user", "Où?"),
            Turn("assistant", "Là-bas 🧭."),
            Turn("user", "Et quand?"),
        )
        for way in ("complete", "stream"):
            if way == "complete":
                peer.model.complete(ask(turns=turns))
            else:
                list(peer.model.stream(ask(turns=turns)))
            body = peer.received()[-1]
            indexes = [body.find(turn.content) for turn in turns]
            assert -1 not in indexes, body
            assert indexes[1:] == sorted(indexes[1:]), "the turns keep their order"
            assert "500" in body, "the request has the output limit"

    @pytest.mark.parametrize("way", ["complete", "stream"])
    def test_token_counts_are_reported(self, peer: Peer, way: str) -> None:
        completion = self._done(peer, way, ask())
        assert (completion.input_tokens, completion.output_tokens) == (110, 7)
        assert completion.cache_read_tokens == (64 if peer.counts_cache else 0)

    @pytest.mark.parametrize("reason", ["stop", "length"])
    @pytest.mark.parametrize("way", ["complete", "stream"])
    def test_the_finish_reason_is_reported(
        self, peer: Peer, way: str, reason: Literal["stop", "length"]
    ) -> None:
        peer.says(Say(finish_reason=reason))
        assert self._done(peer, way, ask()).finish_reason == reason

    @pytest.mark.parametrize("way", ["complete", "stream"])
    def test_tools_are_called(self, peer: Peer, way: str) -> None:
        calls = (
            ToolCall(
                "call-1",
                "find",
                {"query": "tea, “green” 🍵\n", "deep": {"list": [1, 2.5, None, True]}},
            ),
            ToolCall("call-2", "clock", {}),
            ToolCall("call-3", "find", {"query": "cake"}),
        )
        for calls_of_answer in (calls[:1], calls):
            peer.says(Say((), calls_of_answer, "tool_calls"))
            completion = self._done(peer, way, ask(tools=TOOLS, tool_choice="auto"))
            assert [(c.name, c.arguments) for c in completion.tool_calls] == [
                (c.name, c.arguments) for c in calls_of_answer
            ]
            assert len({c.id for c in completion.tool_calls}) == len(calls_of_answer), (
                "each has an id of its own"
            )
            assert completion.finish_reason == "tool_calls"
            assert all(
                tool.name in peer.received()[-1] and tool.description in peer.received()[-1]
                for tool in TOOLS
            )

    def test_a_text_beside_a_call_is_returned(self, peer: Peer) -> None:
        peer.says(Say(("Let me see.",), (ToolCall("call-1", "clock", {}),), "tool_calls"))
        for way in ("complete", "stream"):
            completion = self._done(peer, way, ask(tools=TOOLS))
            assert (completion.content, [c.name for c in completion.tool_calls]) == (
                "Let me see.",
                ["clock"],
            )

    def test_results_of_tools_are_passed_on(self, peer: Peer) -> None:
        """The calls are passed back unchanged."""
        peer.says(
            Say(
                (),
                (ToolCall("call-1", "find", {"query": "tea"}), ToolCall("call-2", "clock", {})),
                "tool_calls",
            ),
            Say(),
        )
        first = peer.model.complete(ask(tools=TOOLS))
        results = [
            Turn("tool", f"result number {n}", tool_call_id=c.id)
            for n, c in enumerate(first.tool_calls)
        ]
        turns = (*ask().turns, Turn("assistant", first.content, first.tool_calls), *results)
        assert peer.model.complete(ask(tools=TOOLS, turns=turns)).content == "All is well."
        body = peer.received()[-1]
        assert body.find("result number 0") < body.find("result number 1")
        assert "tea" in body

    @pytest.mark.parametrize("choice", [None, "auto", "any", "required", "none", "find"])
    def test_every_tool_choice_is_accepted(self, peer: Peer, choice: str | None) -> None:
        assert peer.model.complete(ask(tools=TOOLS, tool_choice=choice)).content == "All is well."

    @pytest.mark.parametrize("way", ["complete", "stream"])
    def test_a_structured_answer_is_json(self, peer: Peer, way: str) -> None:
        for text in (
            '{"answer": "yes"}',
            '```json\n{"answer": "yes"}\n```',
            'Sure: {"answer": "yes"}',
        ):
            peer.says(Say((text,)))
            completion = self._done(peer, way, ask(response_schema=SCHEMA))
            assert json.loads(completion.content) == {"answer": "yes"}
            assert '"answer"' in peer.received()[-1].replace("\\", ""), (
                "the request contains the schema in some form"
            )

    def test_every_option_is_accepted(self, peer: Peer) -> None:
        """Options that the protocol does not have are left out."""
        options: dict[str, Any] = {
            "top_p": 0.9,
            "top_k": 40,
            "frequency_penalty": 0.1,
            "presence_penalty": 0.2,
            "seed": 7,
            "thinking_effort": "low",
            "thinking_budget_tokens": 2048,
            "structured_output_mode": "json_object",
            "stop_sequences": ("END",),
            "cache_policy": {"mode": "auto", "ttl_seconds": 3600, "key_version": "1"},
        }
        original = deepcopy(options)
        assert peer.model.complete(ask(options=options, temperature=0.3)).content == "All is well."
        assert "END" in peer.received()[-1]
        assert options == original, "the caller's options are not changed"

    def test_a_stream_does_not_buffer(self, peer: Peer) -> None:
        """The first piece arrives before the last one is sent."""
        gate = threading.Event()
        peer.says(Say(("first", " second"), gate=gate))
        pieces = peer.model.stream(ask())
        assert next(pieces) == "first"
        gate.set()
        remaining, completion = whole(pieces)
        assert (remaining, completion.content) == ([" second"], "first second")

    def test_closing_a_stream_ends_the_exchange(self, peer: Peer) -> None:
        gate = threading.Event()
        peer.says(Say(("first", " second" * 1000), gate=gate))
        pieces = peer.model.stream(ask())
        assert next(pieces) == "first"
        close: Callable[[], None] | None = getattr(pieces, "close", None)
        assert close is not None, "a stream can be closed"
        close()
        assert peer.was_left(SLACK)

    @pytest.mark.parametrize("fault", ["cut", "error in stream"])
    def test_a_stream_that_is_cut_raises(self, peer: Peer, fault: Fault) -> None:
        """It does not just end. Pieces that arrived before are yielded."""
        self._misbehave(peer, fault)
        pieces = peer.model.stream(ask())
        assert isinstance(next(pieces), str)
        with pytest.raises(ModelFailure) as caught:
            list(pieces)
        assert caught.value.retryable

    @pytest.mark.parametrize("way", ["complete", "stream"])
    @pytest.mark.parametrize("fault", ["cut", "garbage"])
    def test_an_unreadable_answer_is_retryable(self, peer: Peer, way: str, fault: Fault) -> None:
        self._misbehave(peer, fault)
        assert self._failure(peer, way).retryable

    @pytest.mark.parametrize("way", ["complete", "stream"])
    def test_an_html_page_is_not_retryable(self, peer: Peer, way: str) -> None:
        """It means that the URL is wrong, so a retry does not help."""
        self._misbehave(peer, "html")
        assert not self._failure(peer, way).retryable

    @pytest.mark.parametrize("way", ["complete", "stream"])
    def test_an_endless_answer_is_cancelled(self, peer: Peer, way: str) -> None:
        self._misbehave(peer, "huge")
        self._failure(peer, way)
        assert peer.was_left(SLACK)

    @pytest.mark.parametrize("way", ["complete", "stream"])
    @pytest.mark.parametrize("fault", ["hang", "drip", "drip head"])
    def test_the_timeout_bounds_the_whole_exchange(
        self, peer: Peer, way: str, fault: Fault
    ) -> None:
        self._misbehave(peer, fault)
        began = time.monotonic()
        failure = self._failure(peer, way, ask(timeout=PATIENCE))
        assert time.monotonic() - began < PATIENCE + SLACK
        assert failure.retryable

    @pytest.mark.parametrize("way", ["complete", "stream"])
    @pytest.mark.parametrize("fault", ["hang", "drip", "drip head"])
    def test_an_answer_that_is_no_longer_wanted_ends(
        self, peer: Peer, way: str, fault: Fault
    ) -> None:
        if "is_wanted" in peer.cannot:
            pytest.skip("this provider does not cancel exchanges")
        self._misbehave(peer, fault)
        began = time.monotonic()
        request = ask(is_wanted=lambda: time.monotonic() - began < 0.3)
        failure = self._failure(peer, way, request)
        assert time.monotonic() - began < SLACK
        assert not failure.retryable
        assert peer.was_left(SLACK)

    @pytest.mark.parametrize("way", ["complete", "stream"])
    def test_a_refusal_raises_refusal(self, peer: Peer, way: str) -> None:
        self._misbehave(peer, "refuse")
        failure = self._failure(peer, way)
        assert isinstance(failure, Refusal)
        assert not failure.retryable

    @pytest.mark.parametrize("way", ["complete", "stream"])
    @pytest.mark.parametrize(
        ("status", "retryable"),
        [
            *((status, False) for status in (400, 401, 403, 404, 422)),
            *((status, True) for status in (408, 409, 429, 500, 502, 503, 529)),
        ],
    )
    def test_a_failure_tells_if_it_is_retryable(
        self, peer: Peer, way: str, status: int, retryable: bool
    ) -> None:
        peer.fails(status)
        failure = self._failure(peer, way)
        assert (failure.status, failure.retryable) == (status, retryable)
        assert str(status) in str(failure)

    def test_a_call_is_one_try(self, peer: Peer) -> None:
        """The caller records each try and decides whether there is time for another."""
        for status in (429, 500):
            before = len(peer.received())
            peer.fails(status)
            self._failure(peer, "complete")
            assert len(peer.received()) == before + 1

    def test_the_requested_pause_is_reported(self, peer: Peer) -> None:
        for header, seconds in (("17", 17.0), ("1.5", 1.5)):
            peer.fails(429, {"Retry-After": header})
            assert self._failure(peer, "complete").retry_after == pytest.approx(seconds)
        peer.fails(429)
        assert self._failure(peer, "complete").retry_after is None
        peer.fails(503, {"Retry-After": "soon"})
        assert self._failure(peer, "complete").retry_after is None

    def test_the_requested_pause_may_be_a_date(self, peer: Peer) -> None:
        peer.fails(
            503,
            {
                "Retry-After": format_datetime(
                    datetime.now(UTC) + timedelta(seconds=40), usegmt=True
                )
            },
        )
        assert self._failure(peer, "stream").retry_after == pytest.approx(40, abs=5)
        peer.fails(503, {"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"})
        assert self._failure(peer, "complete").retry_after == 0

    def test_no_failure_contains_the_key_or_message_text(
        self, peer: Peer, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level("DEBUG")
        failures = []
        for status in (400, 401, 404, 429, 500):
            peer.fails(status)
            failures += [self._failure(peer, way) for way in ("complete", "stream")]
        for fault in ("cut", "garbage", "html", "refuse", "error in stream"):
            if fault not in peer.cannot:
                peer.misbehaves(fault)
                failures.append(self._failure(peer, "stream"))
        error_texts = [
            text
            for failure in failures
            for text in (str(failure), repr(failure), *traceback.format_exception(failure))
        ]
        for text in (*error_texts, caplog.text):
            assert SECRET not in text
            assert not peer.key or peer.key not in text

    def test_after_a_failure_the_next_call_succeeds(self, peer: Peer) -> None:
        for fault in ("cut", "garbage", "refuse", "error in stream", "hang"):
            if fault in peer.cannot:
                continue
            peer.misbehaves(fault)
            self._failure(peer, "stream", ask(timeout=PATIENCE if fault == "hang" else 20.0))
            peer.says(Say())
            assert peer.model.complete(ask()).content == "All is well."

    def test_threads_do_not_disturb_each_other(self, peer: Peer) -> None:
        peer.echoes()

        def talk(number: int) -> bool:
            text = f"thread {number} says {'x' * number * 500}"
            completion = peer.model.complete(ask(text))
            _, streamed = whole(peer.model.stream(ask(text)))
            return completion.content == streamed.content == text

        with ThreadPoolExecutor(8) as pool:
            assert all(pool.map(talk, range(24)))

    def _done(self, peer: Peer, way: str, request: CompletionRequest) -> Completion:
        return (
            peer.model.complete(request)
            if way == "complete"
            else whole(peer.model.stream(request))[1]
        )
