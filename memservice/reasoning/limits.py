"""The time that one answer may take, shared by all calls of models that it needs. Nothing more is
called after it, or after the caller has gone."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

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
"""Of the time: afterwards a model may look up nothing more."""
FIRST_SHARE = 0.6
"""Of the time that is left: what one call may take where another model is there to fall back on."""
MIN_SECONDS = 0.05
"""With less left, no call begins."""


class OutOfTime(ModelFailure):
    """The time of the answer is over."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"it took longer than {seconds:g} s", retryable=False, fault="provider")


class CallerGone(ModelFailure):
    """The caller no longer waits for the answer."""

    def __init__(self) -> None:
        super().__init__("the caller has gone", retryable=False, fault="provider")


class Limits:
    """The limits of one answer; its time begins when they are made. Not shared between threads."""

    def __init__(
        self, seconds: float, is_wanted: Callable[[], bool], clock: Callable[[], float]
    ) -> None:
        self._seconds = seconds
        self._is_wanted = is_wanted
        self._clock = clock
        self._began = clock()
        self._last_failure: ModelFailure | None = None

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
        """Whether it is time to answer from what was found."""
        return self.remaining < (1 - SEARCH_SHARE) * self._seconds

    def check(self) -> None:
        """Raises CallerGone, or OutOfTime."""
        if not self._is_wanted():
            raise CallerGone
        if self.remaining < MIN_SECONDS:
            raise OutOfTime(self._seconds) from self._last_failure

    def failed(self, error: ModelFailure) -> None:
        """Note that a call failed. Raises OutOfTime if it took all the time that was left."""
        self._last_failure = error
        if self.remaining < MIN_SECONDS:
            raise OutOfTime(self._seconds) from error

    def sleep(self, seconds: float, sleep: Callable[[float], None]) -> None:
        """A pause between two tries. Raises the failure of the first at once if the second would
        come too late."""
        self.check()
        if seconds >= self.remaining and self._last_failure is not None:
            raise self._last_failure
        sleep(seconds)


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
        seconds = self._seconds()
        try:
            return self._model.complete(replace(self._shortened(request), timeout=seconds))
        except ModelFailure as error:
            self._limits.failed(error)
            raise

    def stream(self, request: CompletionRequest) -> Iterator[str | Completion]:
        """The limit is that of the first piece: a stream that has begun is read to its end."""
        self._limits.check()
        request = replace(
            self._shortened(request), timeout=self._timeout, start_timeout=self._seconds()
        )
        has_begun = False
        try:
            for piece in self._model.stream(request):
                yield piece
                has_begun = True
        except ModelFailure as error:
            if not has_begun:
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
        return replace(request, turns=turns, tool_choice="none")
