"""The reasoner `llm` keeps the contract of reasoners, over a model that reads its prompts and
answers as one would that is good at it.

What is tested is ours: that everything a model has to know stands in the prompt, and what is taken
of its answer. Not how good a model is.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import pytest

from memservice.reasoning.prompts import derive, summarize
from memservice.reasoning.reasoner import LlmReasoner
from memservice.spi.llm import CompletionRequest
from memservice.spi.reasoner import DeriveRequest, Reasoner, Utterance
from memservice.testing.reasoner import ReasonerContract
from memservice_extractive.reasoner import ExtractiveReasoner
from support.reasoning.model import SCRIPTED, ModelHarness, Reply, ScriptedModel

NOW = datetime(2024, 5, 17, tzinfo=UTC)
_ENTRY = re.compile(
    r"^(?:\[(\d+)\] )?(\w{3} \d{4}-\d\d-\d\d \d\d:\d\d \S+) (.*?): (.*(?:\n    .*)*)", re.M
)
_DOCUMENT: dict[str, Any] = {
    "certain": True,
    "count": 1,
    "tags": [],
    "kind": "pet",
    "inner": {"note": None},
}


def reader(request: CompletionRequest) -> Reply:
    """Infers the task from the prompt alone, and does it."""
    system, user = request.turns[0].content, request.turns[1].content
    if system.startswith(derive.PROMPT.text):
        return {"statements": _noted(user)}
    if system.startswith((summarize.SHORT.text, summarize.LONG.text)):
        return "\n".join(match[4] for match in _ENTRY.finditer(user))
    if request.tools:
        return "DONE"
    text = "It is called Balthazar." if "Balthazar" in user else "Nothing is known about that."
    return {"answer": text, **_DOCUMENT} if request.response_schema else text


def _noted(user: str) -> list[dict[str, Any]]:
    observed = re.findall(r"^Observed peer: (.*)$", user, re.M)[0]
    entries = [
        (int(match[1]), match[3], match[4].replace("\n    ", "\n"))
        for match in _ENTRY.finditer(user)
        if match[1]
    ]
    utterances = [
        Utterance(number, str(number), author, text, NOW) for number, author, text in entries
    ]
    result = ExtractiveReasoner().derive(DeriveRequest(observed, utterances))
    return [
        {"content": statement.content, "messages": list(statement.message_keys)}
        for statement in result.statements
    ]


class TestLlmReasoner(ReasonerContract):
    @pytest.fixture
    def reasoner(self) -> Reasoner:
        model = ScriptedModel()
        model.say = reader
        return LlmReasoner(ModelHarness(model, **SCRIPTED).models)
