"""The reasoner that needs no model: deterministic, local, free."""

from __future__ import annotations

from collections.abc import Iterator

from memservice.spi.capabilities import Capability
from memservice.spi.reasoner import (
    AnswerRequest,
    Consolidated,
    ConsolidateRequest,
    Derived,
    DeriveRequest,
    Summarized,
    SummarizeRequest,
)


class ExtractiveReasoner:
    """Quotes messages and conclusions; only the frame of an answer has words of its own. Has no
    state. Ignores instructions."""

    name = "extractive"
    capabilities: frozenset[Capability] = frozenset({Capability.COMPUTES})

    def derive(self, request: DeriveRequest) -> Derived:
        from memservice_extractive.derive import derive

        return derive(request)

    def summarize(self, request: SummarizeRequest) -> Summarized:
        from memservice_extractive.summarize import summarize

        return summarize(request)

    def consolidate(self, request: ConsolidateRequest) -> Consolidated:
        from memservice_extractive.consolidate import consolidate

        return consolidate(request)

    def answer(self, request: AnswerRequest) -> Iterator[str]:
        from memservice_extractive.answer import answer

        return answer(request)
