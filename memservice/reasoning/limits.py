"""The time limit of one answer, shared by all its calls of models. Calls end with it, and when the
client has disconnected."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator

from msgspec.structs import replace

from memservice.reasoning.prompts.answer import ANSWER_NOW
from memservice.spi.llm import (
    Completion,
    CompletionRequest,
    LanguageModel,
    ModelFailure,
    Turn,
)
from memservice.spi.reasoner import AnswerRequest

SEARCH_SHARE = 2 / 3
"""Of the time: afterwards a model can no longer look anything up."""
FIRST_SHARE = 0.6
"""Of the remaining time: limit of one call if there is a fallback model."""
MIN_SECONDS = 0.05
"""With less remaining time, no call begins."""


class OutOfTime(ModelFailure):
    """The time limit of the answer was reached."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"it took longer than {seconds:g} s", retryable=False, fault="provider")


class ClientDisconnected(ModelFailure):
    """The client has disconnected."""

    def __init__(self) -> None:
        super().__init__("the client has disconnected", retryable=False, fault="provider")


class Limits:
    """The limits of one answer; its time starts with their creation. Not shared between threads,
    except for `is_wanted`."""

    def __init__(
        self, seconds: float, is_wanted: Callable[[], bool], clock: Callable[[], float]
    ) -> None:
        self._seconds = seconds
        self._is_wanted = is_wanted
        self._clock = clock
        self._began = clock()
        self._last_failure: ModelFailure | None = None
        self.has_begun = False
        """Whether a streamed answer has begun: the first text of it was passed to the client."""

    @classmethod
    def of(cls, request: AnswerRequest) -> Limits | None:
        """None for an answer without a limit."""
        if request.seconds is None:
            return None
        return cls(request.seconds, request.is_wanted, time.monotonic)

    @property
    def remaining(self) -> float:
        """Seconds."""
        return self._began + self._seconds - self._clock()

    @property
    def is_late(self) -> bool:
        """Whether it is time to answer without further retrieval."""
        return self.remaining < (1 - SEARCH_SHARE) * self._seconds

    def is_wanted(self) -> bool:
        """Whether a call in progress should go on: the client is connected, and time
        remains. A streamed answer that has begun has no time limit."""
        return self._is_wanted() and (self.has_begun or self.remaining > 0)

    def check(self) -> None:
        """Raises ClientDisconnected, or OutOfTime."""
        if not self._is_wanted():
            raise ClientDisconnected
        if self.remaining < MIN_SECONDS:
            raise OutOfTime(self._seconds) from self._last_failure

    def failed(self, error: ModelFailure) -> None:
        """Record the failure of a call. Raises ClientDisconnected if the client has disconnected,
        and OutOfTime if the call took all the time of an answer that has not begun."""
        self._last_failure = error
        if not self._is_wanted():
            raise ClientDisconnected from error
        if not self.has_begun and self.remaining < MIN_SECONDS:
            raise OutOfTime(self._seconds) from error

    def sleep(self, seconds: float, sleep: Callable[[float], None]) -> None:
        """A pause between two tries. Raises the failure of the first one at once if no time would
        remain for the second."""
        self.check()
        if seconds >= self.remaining and self._last_failure is not None:
            raise self._last_failure
        sleep(seconds)


def without_forbidden_calls(request: CompletionRequest, completion: Completion) -> Completion:
    """An empty answer in place of one with calls, if the request did not allow calls: the text
    beside calls is not the answer."""
    if request.tool_choice != "none" or not completion.tool_calls:
        return completion
    return replace(completion, content="", tool_calls=(), finish_reason="stop")


class LimitedModel:
    """A language model within the limits of one answer."""

    def __init__(
        self, model: LanguageModel, limits: Limits, timeout: float | None, share: float
    ) -> None:
        """`timeout`: what the settings allow one call, in seconds."""
        self._model = model
        self._limits = limits
        self._timeout = timeout
        self._share = share

    def complete(self, request: CompletionRequest) -> Completion:
        self._limits.check()
        request = dataclasses.replace(
            self._shortened(request), timeout=self._seconds(), is_wanted=self._limits.is_wanted
        )
        try:
            return without_forbidden_calls(request, self._model.complete(request))
        except ModelFailure as error:
            self._limits.failed(error)
            raise

    def stream(self, request: CompletionRequest) -> Iterator[str | Completion]:
        """The limit ends with the first text of the answer: a stream that has begun is read to its
        end. Reasoning and calls of tools are no text."""
        self._limits.check()
        request = dataclasses.replace(
            self._shortened(request),
            timeout=self._timeout,
            start_timeout=self._seconds(),
            is_wanted=self._limits.is_wanted,
        )
        try:
            for piece in self._model.stream(request):
                if isinstance(piece, Completion):
                    piece = without_forbidden_calls(request, piece)
                yield piece
                if not self._limits.has_begun:
                    self._limits.check()
        except ModelFailure as error:
            self._limits.failed(error)
            raise

    def _seconds(self) -> float:
        left = self._limits.remaining * self._share
        return left if self._timeout is None else min(left, self._timeout)

    def _shortened(self, request: CompletionRequest) -> CompletionRequest:
        """When little time is left, the model has to answer from what it has looked up."""
        if not (request.tools and self._limits.is_late):
            return request
        turns = (*request.turns, Turn("user", ANSWER_NOW))
        return dataclasses.replace(request, turns=turns, tool_choice="none")
