"""Calling a language model: retries, pauses, the fallback model, and a record of each try."""

from __future__ import annotations

import dataclasses
import hashlib
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal

from msgspec.structs import replace

from memservice.compute_lock import released
from memservice.domain.answers.reasoning_tags import ReasoningFilter, without_reasoning
from memservice.domain.answers.written_calls import may_begin_call, written_calls
from memservice.domain.ids import new_uid
from memservice.reasoning import outages
from memservice.reasoning.limits import ClientDisconnected, without_forbidden_calls
from memservice.reasoning.models import Models
from memservice.reasoning.traits import ModelTarget
from memservice.settings.models import ModelConfig
from memservice.spi.llm import (
    Completion,
    CompletionRequest,
    ModelCall,
    ModelFailure,
    Refusal,
    Tool,
    ToolCall,
    ToolsUnsupported,
    Turn,
)
from memservice.spi.reasoner import Origin, Spent
from memservice.spi.waiting import about_to_wait

MAX_REQUESTED_PAUSE = 60.0
"""Seconds. If a provider requests a longer pause, the call fails instead of waiting."""
BUFFERED_CHARS = 160
"""Characters (some 40 tokens) of a stream that are buffered while tools are offered: text before a
call is not part of the answer."""
CUT_OFF = ("length", "max_tokens", "MAX_TOKENS")
"""Finish reasons of answers that were cut at their maximum length."""


class ModelClient:
    """Calls the model of one task, for one request; not shared between threads.

    Makes up to `LLM_MAX_ATTEMPTS` tries, the last of them with the fallback model if there is one.
    After a failure that a retry cannot fix, the fallback is next; after a refusal there is no
    further try. Raises the last `ModelFailure`; any other exception is a bug of the provider.
    """

    def __init__(self, models: Models, purpose: str, config: ModelConfig, origin: Origin) -> None:
        """`purpose`: one of those that `ModelCall.purpose` lists."""
        self.spent = Spent()
        """Usage of all successful calls so far."""
        self._models = models
        self._purpose = purpose
        self._origin = origin
        self._first = models.target(config)
        self._fallback = None if config.fallback is None else models.target(config.fallback)

    @property
    def has_fixed_output(self) -> bool:
        """Whether the model's settings limit its output, independently of the task."""
        return self._first.max_output_tokens is not None

    def complete(
        self,
        turns: Sequence[Turn],
        *,
        tools: Sequence[Tool] = (),
        tool_choice: str | None = None,
        schema: dict[str, Any] | None = None,
        max_output_tokens: int | None = None,
        iteration: int | None = None,
    ) -> Completion:
        """One answer, without reasoning in its text. `max_output_tokens` is the task's
        limit; the model's own setting overrides it.

        An answer that was cut within its reasoning is requested once more, with a higher limit.
        """
        tries = _RetryPlan(self._models, self._first, self._fallback)
        has_more_room = False
        while True:
            request = self._request(
                tries.target, turns, tools, tool_choice, schema, max_output_tokens
            )
            note = _CallRecord(self, tries, request, iteration, is_stream=False)
            try:
                model = self._models.opened(tries.target)
                with released():
                    completion = model.complete(request)
            except ToolsUnsupported:
                raise  # There is no answer: the caller continues without tools.
            except ClientDisconnected:
                note.cancelled()
                raise
            except ModelFailure as error:
                note.failed(error)
                tries.after(error)
                continue
            except Exception as error:
                note.failed(error)
                raise
            note.succeeded(completion)
            answer = self._read(tries.target, request, completion)
            if has_more_room or not _is_starved(answer):
                return answer
            has_more_room = True
            if not self._has_grown(tries.target, request):
                return answer

    def stream(
        self,
        turns: Sequence[Turn],
        *,
        tools: Sequence[Tool] = (),
        tool_choice: str | None = None,
        schema: dict[str, Any] | None = None,
        max_output_tokens: int | None = None,
        iteration: int | None = None,
    ) -> Iterator[str | Completion]:
        """Pieces of an answer as they come, then the whole `Completion`. Once a piece was passed on
        there is no further try.

        Neither reasoning nor calls are among the pieces. With tools the first
        `BUFFERED_CHARS` are buffered, and dropped if calls follow.
        """
        tries = _RetryPlan(self._models, self._first, self._fallback)
        while True:
            request = self._request(
                tries.target, turns, tools, tool_choice, schema, max_output_tokens
            )
            note = _CallRecord(self, tries, request, iteration, is_stream=True)
            reader = _StreamReader(hold=bool(tools), is_open=self._opens_reasoning(tries.target))
            begun = False
            completion: Completion | None = None
            try:
                with _closing(self._models.opened(tries.target).stream(request)) as pieces:
                    for piece in pieces:
                        if isinstance(piece, Completion):
                            completion = piece
                            break
                        if text := reader.take(piece):
                            begun = True
                            yield text
                if completion is None:
                    raise ModelFailure(
                        "the model's stream ended before the answer was complete", retryable=True
                    )
            except (GeneratorExit, ClientDisconnected):
                note.cancelled()
                raise
            except ToolsUnsupported:
                raise
            except ModelFailure as error:
                note.failed(error)
                if begun:
                    raise
                tries.after(error)
                continue
            except Exception as error:
                note.failed(error)
                raise
            note.succeeded(completion)
            answer = self._read(tries.target, request, completion)
            if _is_starved(answer):
                self._has_grown(tries.target, request)
            if answer.content.strip() and not answer.tool_calls and (text := reader.end()):
                yield text
            yield answer
            return

    def _read(
        self, target: ModelTarget, request: CompletionRequest, completion: Completion
    ) -> Completion:
        """The answer without reasoning, and with the calls that the model wrote as text; without
        calls if the request forbids them."""
        return without_forbidden_calls(request, self._cleaned(target, request, completion))

    def _cleaned(
        self, target: ModelTarget, request: CompletionRequest, completion: Completion
    ) -> Completion:
        self._models.traits.learn(target, completion)
        content, _ = without_reasoning(completion.content)
        if request.tools and not completion.tool_calls:
            calls = written_calls(content, {tool.name for tool in request.tools})
            if calls:
                return replace(
                    completion,
                    content="",
                    tool_calls=tuple(
                        ToolCall(f"call_{new_uid()}", name, arguments) for name, arguments in calls
                    ),
                    finish_reason="tool_calls",
                )
        return completion if content == completion.content else replace(completion, content=content)

    def _has_grown(self, target: ModelTarget, request: CompletionRequest) -> bool:
        """Raise the model's limit for reasoning; returns whether that was possible."""
        self._models.traits.starved(target, request.max_output_tokens + request.reasoning_headroom)
        return self._headroom(target) > request.reasoning_headroom

    def _request(
        self,
        target: ModelTarget,
        turns: Sequence[Turn],
        tools: Sequence[Tool],
        tool_choice: str | None,
        schema: dict[str, Any] | None,
        max_output_tokens: int | None,
    ) -> CompletionRequest:
        return CompletionRequest(
            model=target.model,
            turns=tuple(turns),
            max_output_tokens=target.max_output_tokens
            or max_output_tokens
            or self._models.settings.llm.default_max_tokens,
            tools=tuple(tools),
            tool_choice=tool_choice if tools else None,
            response_schema=schema if not tools or self._combines(target) else None,
            temperature=target.temperature,
            options=dict(target.options),
            reasoning_headroom=self._headroom(target),
            opens_reasoning=self._opens_reasoning(target),
            # Rounds with tools begin alike: within one answer, and in all answers for a workspace.
            cache_key=self._cache_key if tools else None,
        )

    @property
    def _cache_key(self) -> str:
        name = f"{self._purpose}\0{self._origin.workspace or ''}"
        return hashlib.blake2b(name.encode(), digest_size=12).hexdigest()

    @property
    def combines_schema_with_tools(self) -> bool:
        """Whether the model can call tools and give its answer in a schema in one conversation."""
        return self._combines(self._first)

    def _combines(self, target: ModelTarget) -> bool:
        mode = target.options.get("structured_output_mode") or "json_schema"
        return mode == "json_schema" and self._models.traits.combines_schema_with_tools(
            target, self._models.provided(target)
        )

    def _headroom(self, target: ModelTarget) -> int:
        return self._models.traits.headroom(target, self._models.provided(target))

    def _opens_reasoning(self, target: ModelTarget) -> bool:
        return self._models.traits.opens_reasoning(target, self._models.provided(target))

    def _spend(self, target: ModelTarget, completion: Completion) -> None:
        """Add the cost of a call. The sum has the model of the last call."""
        self.spent = (
            Spent(
                target.model,
                completion.input_tokens,
                completion.output_tokens,
                completion.cache_read_tokens,
                completion.cache_write_tokens,
                calls=1,
            )
            + self.spent
        )


def _is_starved(completion: Completion) -> bool:
    """Whether all of the answer was reasoning."""
    return (
        completion.finish_reason in CUT_OFF
        and not completion.content.strip()
        and not completion.tool_calls
    )


class _StreamReader:
    """The part of a stream that can be passed on."""

    def __init__(self, *, hold: bool, is_open: bool) -> None:
        self._filter = ReasoningFilter(is_open=is_open)
        self._holds = hold
        self._buffer = ""

    def take(self, piece: str) -> str:
        text = self._filter.take(piece)
        if not self._holds:
            return text
        self._buffer += text
        if len(self._buffer) < BUFFERED_CHARS or may_begin_call(self._buffer):
            return ""
        self._holds = False
        return self._released()

    def end(self) -> str:
        """The rest, of an answer without calls."""
        self._buffer += self._filter.end()
        return self._released()

    def _released(self) -> str:
        text, self._buffer = self._buffer, ""
        return without_reasoning(text)[0]


@contextmanager
def _closing(pieces: Iterator[str | Completion]) -> Iterator[Iterator[str | Completion]]:
    """Close the stream if the reader stops before its end; an iterator that is not a generator may
    have no `close`."""
    try:
        yield pieces
    finally:
        close = getattr(pieces, "close", None)
        if close is not None:
            close()


class _RetryPlan:
    """The model of the next try, and the pause before it."""

    def __init__(self, models: Models, first: ModelTarget, fallback: ModelTarget | None) -> None:
        self.number = 1
        self.of = max(models.settings.llm.max_attempts, 1 if fallback is None else 2)
        self.target = self._first = first
        self._models = models
        self._fallback = fallback

    @property
    def last(self) -> ModelTarget:
        """The model that is tried last."""
        return self._fallback or self._first

    @property
    def is_fallback(self) -> bool:
        return self.target is self._fallback

    def after(self, error: ModelFailure) -> None:
        """Go on to the next try, after its pause. Raises the error if there is none."""
        requested = error.retry_after or 0.0
        repeatable = error.retryable and requested <= MAX_REQUESTED_PAUSE
        hopeless = not (outages.may_retry(self.target, self.last, error) and repeatable)
        if (
            isinstance(error, Refusal)
            or self.number >= self.of
            or (hopeless and (self._fallback is None or self.is_fallback))
        ):
            raise error
        other = (
            self._fallback is not None
            and not self.is_fallback
            and (hopeless or self.number + 1 == self.of)
        )
        if other and self._fallback is not None:
            # The pause that the first model requested does not apply to another one.
            self.target, pause = self._fallback, 0.0 if hopeless else self._pause()
            self.number = self.of
        else:
            self.number, pause = self.number + 1, max(self._pause(), requested)
        if pause:
            with released():
                self._models.sleep(pause)

    def _pause(self) -> float:
        llm = self._models.settings.llm
        return min(
            llm.retry_pause_seconds * 2.0 ** (self.number - 1), llm.retry_longest_pause_seconds
        )


class _CallRecord:
    """The report of one try."""

    def __init__(
        self,
        client: ModelClient,
        tries: _RetryPlan,
        request: CompletionRequest,
        iteration: int | None,
        is_stream: bool,
    ) -> None:
        self._caller, self._target, self._last = client, tries.target, tries.last
        about_to_wait()
        self._began = time.monotonic()
        origin = client._origin
        self._call = ModelCall(
            purpose=client._purpose,
            transport=tries.target.transport,
            model=tries.target.model,
            outcome="success",
            duration_ms=0,
            workspace_key=origin.workspace_key,
            workspace=origin.workspace,
            attempt=tries.number,
            attempts=tries.of,
            is_fallback=tries.is_fallback,
            is_stream=is_stream,
            has_tools=bool(request.tools),
            max_output_tokens=request.max_output_tokens,
            run_id=origin.run_id,
            iteration=iteration,
            request=request,
        )

    def succeeded(self, completion: Completion) -> None:
        outages.answered(self._target, self._last)
        self._caller._spend(self._target, completion)
        self._report(
            "success",
            input_tokens=completion.input_tokens,
            output_tokens=completion.output_tokens,
            cache_read_tokens=completion.cache_read_tokens,
            cache_write_tokens=completion.cache_write_tokens,
            reasoning_tokens=completion.reasoning_tokens,
            finish_reason=completion.finish_reason,
            tool_call_count=len(completion.tool_calls),
            answer=completion,
        )

    def failed(self, error: Exception) -> None:
        status = getattr(error, "status", None)
        self._report(
            "error", error_class=type(error).__name__ + ("" if status is None else f" {status}")
        )

    def cancelled(self) -> None:
        self._report("cancelled")

    def _report(self, outcome: Literal["success", "error", "cancelled"], **fields: Any) -> None:
        duration = round((time.monotonic() - self._began) * 1000)
        self._caller._models.context.called(
            dataclasses.replace(self._call, outcome=outcome, duration_ms=duration, **fields)
        )
