"""Summaries with a language model: the summary before and what came since, in one call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from memservice.domain import tokens
from memservice.reasoning.client import ModelClient
from memservice.reasoning.models import Models
from memservice.reasoning.prompts import Prompt
from memservice.reasoning.prompts import summarize as prompt
from memservice.reasoning.transcript import cut, transcript
from memservice.spi.llm import Turn
from memservice.spi.reasoner import Summarized, SummarizeRequest, Utterance

MAX_INPUT_TOKENS = 25_000
"""Tokens of the messages that one summary is made of; of more, the newest are read."""
WORDS_PER_TOKEN = 0.6
"""For telling the model how long the summary may be: models count words better than tokens."""


def summarize(models: Models, request: SummarizeRequest) -> Summarized:
    """A summary of at most `max_tokens`. Empty where no message says anything, or the model answers
    nothing."""
    if request.max_tokens < 1 or not any(message.content.strip() for message in request.messages):
        return Summarized("")
    client = ModelClient(
        models, f"summary.{request.kind}", models.settings.summary.model_config, request.origin
    )
    asked = turns(request)
    done = client.complete(asked, max_output_tokens=request.max_tokens)
    scaffold = sum(
        tokens.count(turn.content) for turn in turns(replace(request, messages=[], previous=None))
    )
    return Summarized(
        cut(done.content.strip(), request.max_tokens),
        client.spent,
        prompt_of(request.kind).version,
        scaffold,
    )


def prompt_of(kind: str) -> Prompt:
    return prompt.SHORT if kind == "short" else prompt.LONG


def turns(request: SummarizeRequest) -> list[Turn]:
    """What the model is given."""
    system = prompt_of(request.kind).text
    if request.instructions and request.instructions.strip():
        system += prompt.INSTRUCTIONS.format(request.instructions.strip())
    # A previous summary that is longer than summaries may be now would push the messages aside.
    previous = cut((request.previous or "").strip(), 2 * request.max_tokens) or "(none)"
    user = prompt.REQUEST.format(
        previous="    " + "\n    ".join(previous.splitlines()),
        transcript=transcript(_newest(request.messages)),
        words=max(1, int(request.max_tokens * WORDS_PER_TOKEN)),
    )
    return [Turn("system", system), Turn("user", user)]


def _newest(messages: Sequence[Utterance]) -> list[Utterance]:
    """The newest messages within the budget, in order; the last one always, cut if need be."""
    utterances: list[Utterance] = []
    left = MAX_INPUT_TOKENS
    for message in reversed(messages):
        left -= tokens.count(transcript([message])) + 1
        if left < 0:
            break
        utterances.append(message)
    if not utterances and messages:
        utterances = [replace(messages[-1], content=cut(messages[-1].content, MAX_INPUT_TOKENS))]
    return utterances[::-1]
