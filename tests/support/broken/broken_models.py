"""Language models that are wrong in one way each, and the test of the kit that has to say so."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from logging import getLogger
from typing import ClassVar

import pytest
from msgspec.structs import replace

from memservice.spi.llm import Completion, CompletionRequest, LanguageModel, ModelFailure, Refusal
from memservice.spi.providers import Context
from memservice.testing.llm import LanguageModelContract, Peer
from memservice.testing.model_protocols import OpenAiWire
from memservice.testing.model_server import KEY, ScriptedPeer, scripted
from memservice_http.client import Endpoint
from memservice_http.connection import ConnectionSettings
from memservice_openai.chat import OpenAiModel


class CorrectModel:
    """A model that passes everything on."""

    def __init__(self, model: LanguageModel) -> None:
        self.model = model

    def complete(self, request: CompletionRequest) -> Completion:
        return self.model.complete(request)

    def stream(self, request: CompletionRequest) -> Iterator[str | Completion]:
        yield from self.model.stream(request)


class Broken(LanguageModelContract):
    """The kit on a broken model. `caught_by` names tests that have to fail."""

    broken: ClassVar[type[CorrectModel]]
    caught_by: ClassVar[tuple[str, ...]]

    @pytest.fixture
    def peer(self) -> Iterator[Peer]:
        with scripted() as server:
            context = Context(lambda: datetime.now(UTC), getLogger("test"))
            endpoint = Endpoint(
                "openai",
                server.url,
                {"authorization": f"Bearer {KEY}"},
                ConnectionSettings().load({"api_key": KEY}),
                context.clock,
            )
            yield ScriptedPeer(server, OpenAiWire(), self.broken(OpenAiModel(endpoint, context)))


class Buffers(CorrectModel):
    def stream(self, request: CompletionRequest) -> Iterator[str | Completion]:
        yield from list(self.model.stream(request))


class EndsWhenCut(CorrectModel):
    def stream(self, request: CompletionRequest) -> Iterator[str | Completion]:
        text = ""
        try:
            for piece in self.model.stream(request):
                text += piece if isinstance(piece, str) else ""
                yield piece
        except ModelFailure as error:
            if not text:
                raise
            yield Completion(text, finish_reason=f"cut ({error.status})")


class TriesAgain(CorrectModel):
    def complete(self, request: CompletionRequest) -> Completion:
        try:
            return self.model.complete(request)
        except ModelFailure:
            return self.model.complete(request)


class TellsTheKey(CorrectModel):
    def complete(self, request: CompletionRequest) -> Completion:
        try:
            return self.model.complete(request)
        except ModelFailure as error:
            raise ModelFailure(
                f"{error} with {KEY}", retryable=error.retryable, status=error.status
            ) from error


class HopesForever(CorrectModel):
    def complete(self, request: CompletionRequest) -> Completion:
        try:
            return self.model.complete(request)
        except ModelFailure as error:
            raise ModelFailure(
                str(error), retryable=True, status=error.status, retry_after=error.retry_after
            ) from error


class ForgetsHowLong(CorrectModel):
    def complete(self, request: CompletionRequest) -> Completion:
        try:
            return self.model.complete(request)
        except Refusal:
            raise
        except ModelFailure as error:
            raise ModelFailure(
                str(error), retryable=error.retryable, status=error.status
            ) from error


class TakesRefusalsForAnswers(CorrectModel):
    def complete(self, request: CompletionRequest) -> Completion:
        try:
            return self.model.complete(request)
        except Refusal as error:
            return Completion(str(error))


class KeepsTheFirstCall(CorrectModel):
    def complete(self, request: CompletionRequest) -> Completion:
        completion = self.model.complete(request)
        return replace(completion, tool_calls=completion.tool_calls[:1])


class CountsNothing(CorrectModel):
    def complete(self, request: CompletionRequest) -> Completion:
        return replace(self.model.complete(request), input_tokens=0, output_tokens=0)


class IgnoresTheBound(CorrectModel):
    def complete(self, request: CompletionRequest) -> Completion:
        return self.model.complete(dataclasses.replace(request, timeout=9.0))


class DropsTheSystem(CorrectModel):
    def complete(self, request: CompletionRequest) -> Completion:
        return self.model.complete(
            dataclasses.replace(
                request, turns=[turn for turn in request.turns if turn.role != "system"]
            )
        )


class MixesUpThreads(CorrectModel):
    def complete(self, request: CompletionRequest) -> Completion:
        self.request = request
        time.sleep(0.01)
        return self.model.complete(self.request)


class TestBuffers(Broken):
    broken, caught_by = Buffers, ("test_a_stream_does_not_buffer",)


class TestEndsWhenCut(Broken):
    broken, caught_by = (
        EndsWhenCut,
        (
            "test_a_stream_that_is_cut_raises[cut]",
            "test_a_stream_that_is_cut_raises[error in stream]",
        ),
    )


class TestTriesAgain(Broken):
    broken, caught_by = TriesAgain, ("test_a_call_is_one_try",)


class TestTellsTheKey(Broken):
    broken, caught_by = TellsTheKey, ("test_no_failure_contains_the_key_or_message_text",)


class TestHopesForever(Broken):
    broken, caught_by = (
        HopesForever,
        ("test_a_failure_tells_if_it_is_retryable[401-False-complete]",),
    )


class TestForgetsHowLong(Broken):
    broken, caught_by = ForgetsHowLong, ("test_the_requested_pause_is_reported",)


class TestTakesRefusalsForAnswers(Broken):
    broken, caught_by = TakesRefusalsForAnswers, ("test_a_refusal_raises_refusal[complete]",)


class TestKeepsTheFirstCall(Broken):
    broken, caught_by = KeepsTheFirstCall, ("test_tools_are_called[complete]",)


class TestCountsNothing(Broken):
    broken, caught_by = CountsNothing, ("test_token_counts_are_reported[complete]",)


class TestIgnoresTheBound(Broken):
    broken, caught_by = (
        IgnoresTheBound,
        ("test_the_timeout_bounds_the_whole_exchange[hang-complete]",),
    )


class TestDropsTheSystem(Broken):
    broken, caught_by = DropsTheSystem, ("test_the_whole_request_arrives",)


class TestMixesUpThreads(Broken):
    broken, caught_by = MixesUpThreads, ("test_threads_do_not_disturb_each_other",)
