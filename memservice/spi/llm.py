"""The language-model seam: one exchange with a model, plain or streamed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

Role = Literal["system", "user", "assistant", "tool"]


@dataclass(frozen=True, slots=True)
class Tool:
    """A function that the model may call. `parameters` is a JSON Schema with an object at its root."""

    name: str
    description: str
    parameters: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ToolCall:
    id: str
    name: str
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Turn:
    role: Role
    content: str
    tool_calls: Sequence[ToolCall] = ()
    tool_call_id: str | None = None
    """For role `tool`: which call this is the result of."""


@dataclass(frozen=True, slots=True)
class CompletionRequest:
    model: str
    turns: Sequence[Turn]
    max_output_tokens: int
    tools: Sequence[Tool] = ()
    tool_choice: str | None = None
    response_schema: dict[str, Any] | None = None
    """JSON Schema that the answer must fit. A provider without native support falls back to JSON mode, then to prompting."""
    temperature: float | None = None
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Completion:
    content: str
    tool_calls: Sequence[ToolCall] = ()
    finish_reason: str | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0


class LanguageModel(Protocol):
    """Safe to call from several threads. Raises on failure; retries are the caller's."""

    def complete(self, request: CompletionRequest) -> Completion: ...

    def stream(self, request: CompletionRequest) -> Iterator[str | Completion]:
        """Pieces of the answer as they arrive, then the whole `Completion` last."""
        ...
