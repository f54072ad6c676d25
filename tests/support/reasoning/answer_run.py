"""An answer of a scripted model, and everything that was sent to the model for it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from memservice.reasoning.answer import answer
from memservice.spi.reasoner import Answered, AnswerRequest, Origin
from support.reasoning.model import NOW, SCRIPTED, ModelHarness, ScriptedModel, calling
from support.reasoning.toolbox import FakeToolbox, conclusion_evidence

FULL = [
    "search_memory",
    "search_messages",
    "grep_messages",
    "get_messages_by_date_range",
    "search_messages_temporal",
    "get_observation_context",
    "get_reasoning_chain",
    "calculate_dates",
    "count_items",
]


READY = "READY"


LOOK = calling(("search_memory", {"query": "bees"}), beside="Let me look that up.")


class AnswerRun:
    """An answer, and everything that was sent to the model for it."""

    def __init__(
        self,
        *replies: Any,
        settings: dict[str, str] | None = None,
        toolbox: FakeToolbox | None = None,
        **request: Any,
    ) -> None:
        self.model = ScriptedModel(*replies)
        self.harness = ModelHarness(self.model, **{**SCRIPTED, **(settings or {})})
        self.toolbox = (
            FakeToolbox(conclusion_evidence("c-1", "Alice keeps bees."))
            if toolbox is None
            else toolbox
        )
        fields: dict[str, Any] = {
            "subject": "alice",
            "asker": "alice",
            "evidence": [],
            "tools": self.toolbox,
            "asked_at": NOW,
            "origin": Origin(1, "w", "run-1"),
        }
        self.request = AnswerRequest("Does Alice keep bees?", **(fields | request))
        self.pieces: list[str] = []
        self.took = Answered()

    def run(self) -> str:
        self.collect(answer(self.harness.models, self.request))
        return "".join(self.pieces)

    def collect(self, pieces: Iterable[str | Answered]) -> None:
        for piece in pieces:
            if isinstance(piece, Answered):
                self.took = piece
            else:
                self.pieces.append(piece)

    @property
    def opening(self) -> str:
        return self.model.requests[0].turns[1].content
