"""The reasoner `llm`: one module for each task, with the language models of the configuration."""

from __future__ import annotations

from collections.abc import Iterator

from memservice.reasoning import choice
from memservice.reasoning.models import Models
from memservice.spi.reasoner import (
    Answered,
    AnswerRequest,
    Consolidated,
    ConsolidateRequest,
    Derived,
    DeriveRequest,
    Summarized,
    SummarizeRequest,
)


class LlmReasoner:
    """Calls language models. Its only state is the open models; safe to call from several
    threads."""

    name = "llm"
    capabilities = choice.LLM_CAPABILITIES

    def __init__(self, models: Models) -> None:
        self._models = models

    def open_model(self, task: str) -> None:
        """Open the model of a task before its first call, which does not wait for imports then.
        Raises `ConfigurationError`."""
        model = choice.models_of(self._models.settings)[task]
        self._models.provided(self._models.target(model))

    def derive(self, request: DeriveRequest) -> Derived:
        from memservice.reasoning.derive import derive

        return derive(self._models, request)

    def summarize(self, request: SummarizeRequest) -> Summarized:
        from memservice.reasoning.summarize import summarize

        return summarize(self._models, request)

    def consolidate(self, request: ConsolidateRequest) -> Consolidated:
        if request.card_only and request.in_one_call:
            from memservice.reasoning.card import refresh

            return refresh(self._models, request)
        from memservice.reasoning.consolidate import consolidate

        return consolidate(self._models, request)

    def answer(self, request: AnswerRequest) -> Iterator[str | Answered]:
        from memservice.reasoning.answer import answer

        return answer(self._models.within(request), request)
