"""Properties of each model: from its name, from its settings, and from its answers so far."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

from memservice.domain.answers.reasoning_tags import has_bare_closing_tag
from memservice.spi.llm import Completion, LanguageModel

HEADROOM = {
    "none": 0,
    "minimal": 2_000,
    "low": 2_000,
    "medium": 8_000,
    "high": 16_000,
    "xhigh": 16_000,
    "max": 16_000,
}
"""Tokens for reasoning on top of the answer, by `thinking_effort`."""
USUAL_HEADROOM = 8_000
"""Tokens for a model that reasons and has no effort set."""
MAX_HEADROOM = 32_000
MAX_MODELS = 1_000


@dataclasses.dataclass(frozen=True, slots=True)
class ModelTarget:
    """A model with the parameters of its calls."""

    transport: str
    model: str
    connection: Mapping[str, Any] = dataclasses.field(repr=False)
    """The settings that open its provider, including the key."""
    temperature: float | None = None
    max_output_tokens: int | None = None
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)


class _Observation(Struct):
    reasons: bool = False
    reasoning_tokens: int = 0
    """Maximum of one answer."""
    opens_reasoning: bool = False


class ModelTraits(Struct):
    """Safe to share between threads."""

    _observations: dict[tuple[str, str, str], _Observation] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def headroom(self, target: ModelTarget, model: LanguageModel) -> int:
        """Tokens for reasoning besides the answer. 0 for a model that is not known to
        reason, and if the settings limit the whole output."""
        if target.max_output_tokens is not None:
            return 0
        budget, effort = (
            target.options.get("thinking_budget_tokens"),
            target.options.get("thinking_effort"),
        )
        observation = self._of(target)
        if budget is not None:
            usual = int(budget)
        elif effort is not None:
            usual = HEADROOM.get(effort, USUAL_HEADROOM)
        elif observation.reasons or _says(model, "reasons", target):
            usual = USUAL_HEADROOM
        else:
            usual = 0
        return min(max(usual, 2 * observation.reasoning_tokens), MAX_HEADROOM)

    def opens_reasoning(self, target: ModelTarget, model: LanguageModel) -> bool:
        """Whether an answer begins within reasoning, without an opening tag."""
        return self._of(target).opens_reasoning or _says(model, "opens_reasoning", target)

    def combines_schema_with_tools(self, target: ModelTarget, model: LanguageModel) -> bool:
        """Whether one request may have both a schema and tools, according to the provider."""
        return _says(model, "combines_schema_with_tools", target)

    def learn(self, target: ModelTarget, completion: Completion) -> None:
        """Record the properties of an unmodified answer."""
        bare = has_bare_closing_tag(completion.content)
        if completion.reasoning_tokens or bare:
            with self._lock:
                observation = self._stored(target)
                observation.reasons = True
                observation.reasoning_tokens = max(
                    observation.reasoning_tokens, completion.reasoning_tokens
                )
                observation.opens_reasoning = observation.opens_reasoning or bare

    def starved(self, target: ModelTarget, spent: int) -> None:
        """A whole answer of `spent` tokens was reasoning: the next one needs a higher limit."""
        with self._lock:
            observation = self._stored(target)
            observation.reasons = True
            observation.reasoning_tokens = max(observation.reasoning_tokens, spent)

    def _of(self, target: ModelTarget) -> _Observation:
        with self._lock:
            return self._observations.get(_key(target), _Observation())

    def _stored(self, target: ModelTarget) -> _Observation:
        if len(self._observations) >= MAX_MODELS:
            self._observations.clear()
        return self._observations.setdefault(_key(target), _Observation())


def _key(target: ModelTarget) -> tuple[str, str, str]:
    return target.transport, str(target.connection.get("base_url") or ""), target.model


def _says(model: LanguageModel, method: str, target: ModelTarget) -> bool:
    """The provider's information about a model, if it implements that part of `KnowsModels`."""
    says = getattr(model, method, None)
    return says is not None and bool(says(target.model))
