"""Does each configured language model answer? Asked for one word, one try each."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from memservice.reasoning.choice import LLM, models_of
from memservice.reasoning.models import Models
from memservice.reasoning.prompts import probe as prompt
from memservice.reasoning.traits import ModelTarget
from memservice.spi.llm import CompletionRequest, Turn

SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Answered:
    ok: bool
    said: str
    advice: str = ""


def ask(models: Models, chosen: Mapping[str, str]) -> list[Answered]:
    """One answer for each model that some task asks; `chosen` is the reasoner of each task."""
    wanted: dict[tuple[str, str, str], ModelTarget] = {}
    for task, config in models_of(models.settings).items():
        if chosen[task] == LLM:
            target = models.target(config)
            wanted[target.transport, target.model, str(target.connection["base_url"])] = target
    return [_answer(models, target) for target in wanted.values()] or [
        Answered(True, "none is configured: `extractive` does without")
    ]


def _answer(models: Models, target: ModelTarget) -> Answered:
    name = f"{target.transport}/{target.model}"
    began = time.monotonic()
    request = CompletionRequest(
        model=target.model,
        turns=[Turn("user", prompt.QUESTION)],
        max_output_tokens=16,
        timeout=SECONDS,
    )
    try:
        models.opened(target).complete(request)
    except Exception as error:  # a provider is a plugin and may fail in any way
        return Answered(False, f"{name}: {error}", "see its key, its URL and its name")
    return Answered(True, f"{name} answered in {time.monotonic() - began:.1f} s")
