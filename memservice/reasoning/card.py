"""Refreshing a card with a language model, in one call."""

from __future__ import annotations

from typing import Any

from memservice.reasoning import structured
from memservice.reasoning.client import ModelClient
from memservice.reasoning.models import Models
from memservice.reasoning.prompts import card as prompt
from memservice.reasoning.render import text_of
from memservice.reasoning.transcript import name
from memservice.spi.llm import Turn
from memservice.spi.reasoner import Consolidated, ConsolidateRequest

PURPOSE = "dream.card_refresh"
MAX_CHARS = 400
"""Characters of each conclusion."""


def refresh(models: Models, request: ConsolidateRequest) -> Consolidated:
    """The new card, from the current one and from the known conclusions; None if it does not
    change. Calls the deriver's model."""
    config = models.settings.deriver.model_config
    client = ModelClient(models, PURPOSE, config, request.origin)
    answer = structured.ask_once_more(
        client, _turns(request), prompt.SCHEMA, shape=_shaped, accept_cut=False
    )
    # In a cut card, missing lines would count as removed ones.
    lines = [] if answer.is_cut else answer.value["card"]
    return Consolidated(card=lines or None, spent=client.spent)


def _turns(request: ConsolidateRequest) -> list[Turn]:
    system = prompt.PROMPT.text
    if request.card_instructions and request.card_instructions.strip():
        system += prompt.INSTRUCTIONS.format(request.card_instructions.strip())
    card = [f"- {' '.join(line.split())}" for line in request.card]
    conclusions = [
        f"- {item.said_at:%Y-%m-%d}: {text_of(item.content, MAX_CHARS)}" for item in request.known
    ]
    user = prompt.REQUEST.format(
        observed=name(request.observed),
        card="\n".join(card) or prompt.EMPTY,
        known="\n".join(conclusions) or prompt.EMPTY,
    )
    return [Turn("system", system), Turn("user", user)]


def _shaped(value: Any) -> Any:
    """Accepts a bare list as the card, and drops items that are not text."""
    lines = value.get("card") if isinstance(value, dict) else value
    if isinstance(lines, str):
        lines = lines.splitlines()
    if not isinstance(lines, list):
        return value
    texts = [line.strip().removeprefix("- ") for line in lines if isinstance(line, str)]
    return {"card": [line for line in texts if line]}
