"""Tests whether each configured language model answers, and its capabilities: a few requests of one
word, one try each."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from msgspec import Struct

from memservice.domain.answers.json_text import Unreadable, read
from memservice.domain.answers.reasoning_tags import without_reasoning
from memservice.domain.answers.written_calls import written_calls
from memservice.reasoning.choice import LLM, models_of
from memservice.reasoning.models import Models
from memservice.reasoning.prompts import probe as prompt
from memservice.reasoning.traits import ModelTarget
from memservice.spi.llm import (
    CompletionRequest,
    LanguageModel,
    ModelFailure,
    ToolsUnsupported,
    Turn,
)

SECONDS = 20.0
MAX_OUTPUT_TOKENS = 64


class Answered(Struct, frozen=True):
    ok: bool
    text: str
    advice: str = ""


def ask(models: Models, chosen: Mapping[str, str]) -> list[Answered]:
    """One result for each model that a task uses, with its capabilities; `chosen` is the reasoner
    of each task."""
    targets: dict[tuple[str, str, str], ModelTarget] = {}
    for task, config in models_of(models.settings).items():
        if chosen[task] == LLM:
            target = models.target(config)
            targets[target.transport, target.model, str(target.connection["base_url"])] = target
    return [_answer(models, target) for target in targets.values()] or [
        Answered(True, "none is configured: `extractive` does without")
    ]


def _answer(models: Models, target: ModelTarget) -> Answered:
    name = f"{target.transport}/{target.model}"
    try:
        model = models.opened(target)
        request = CompletionRequest(
            model=target.model,
            turns=[Turn("user", prompt.QUESTION)],
            max_output_tokens=MAX_OUTPUT_TOKENS,
            options=dict(target.options),
            timeout=SECONDS,
            reasoning_headroom=models.traits.headroom(target, models.provided(target)),
        )
        began = time.monotonic()
        completion = model.complete(request)
    except Exception as error:  # a provider is a plugin and may fail in any way
        return Answered(False, f"{name}: {error}", "see its key, its URL and its name")
    took = time.monotonic() - began
    reasons = completion.reasoning_tokens > 0 or without_reasoning(completion.content)[1]
    capabilities = [
        *(f"{what} {_tried(test, model, request)}" for what, test in _TESTS.items()),
        f"reasoning {'yes' if reasons else 'not seen'}",
    ]
    return Answered(True, f"{name} answered in {took:.1f} s: {', '.join(capabilities)}")


def _tried(
    test: Callable[[LanguageModel, CompletionRequest], str],
    model: LanguageModel,
    request: CompletionRequest,
) -> str:
    try:
        return test(model, request)
    except ToolsUnsupported:
        return "no"
    except ModelFailure:
        return "failed"


def _json(model: LanguageModel, request: CompletionRequest) -> str:
    turns = [Turn("user", prompt.AS_JSON)]
    completion = model.complete(replace(request, turns=turns, response_schema=prompt.SCHEMA))
    lacks = getattr(model, "lacks", None)
    try:
        read(without_reasoning(completion.content)[0], prompt.SCHEMA)
    except Unreadable:
        return "no"
    return "in words" if lacks is not None and "json_schema" in lacks(request.model) else "yes"


def _tools(model: LanguageModel, request: CompletionRequest) -> str:
    turns = [Turn("user", prompt.CALL)]
    completion = model.complete(
        replace(request, turns=turns, tools=[prompt.TOOL], tool_choice="auto")
    )
    if completion.tool_calls:
        return "yes"
    written = written_calls(without_reasoning(completion.content)[0], [prompt.TOOL.name])
    return "as text" if written else "not used"


def _streaming(model: LanguageModel, request: CompletionRequest) -> str:
    return "yes" if any(isinstance(piece, str) for piece in model.stream(request)) else "empty"


_TESTS = {"JSON schema": _json, "tools": _tools, "streaming": _streaming}
"""Capability → its test."""
