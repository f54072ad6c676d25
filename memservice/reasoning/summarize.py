"""Summaries with a language model: one call with the previous summary and the newer messages."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence

from msgspec.structs import replace

from memservice.domain import tokens
from memservice.domain.answers.refusals import is_refusal
from memservice.reasoning.client import CUT_OFF, ModelClient
from memservice.reasoning.models import Models
from memservice.reasoning.prompts import Prompt
from memservice.reasoning.prompts import summarize as prompt
from memservice.reasoning.transcript import cut, transcript
from memservice.spi.llm import Completion, Refusal, Turn
from memservice.spi.reasoner import Summarized, SummarizeRequest, Utterance

MAX_INPUT_TOKENS = 25_000
"""Tokens of the messages for one summary. If there are more, only the newest are read."""
WORDS_PER_TOKEN = 0.6
"""For the length limit in the prompt: models count words better than tokens."""
BRIEFER = 0.5
"""Share of the length limit that the prompt allows after a summary was cut."""
MIN_SHARE = 0.1
"""A summary that is shorter than this share of its limit, and of the previous summary, has lost
content."""
MIN_LIMIT = 200
"""Tokens. With a lower limit, a short summary does not show a loss."""

_SENTENCE_END = re.compile(r"[.!?…][\"'”’)\]]*(?=\s|\Z)|[。！？]|\n")

log = logging.getLogger("memservice.reasoning")


def summarize(models: Models, request: SummarizeRequest) -> Summarized:
    """A summary of at most `max_tokens`, which ends with a sentence.

    Empty if all messages are blank, and if the model answers nothing, declines, or writes much less
    than the previous summary: that one remains.
    """
    if request.max_tokens < 1 or not any(message.content.strip() for message in request.messages):
        return Summarized("")
    client = ModelClient(
        models, f"summary.{request.kind}", models.settings.summary.model_config, request.origin
    )
    scaffold = sum(
        tokens.count(turn.content) for turn in turns(replace(request, messages=[], previous=None))
    )
    return Summarized(
        _written(client, request), client.spent, prompt_of(request.kind).version, scaffold
    )


def _written(client: ModelClient, request: SummarizeRequest) -> str:
    try:
        completion = client.complete(turns(request), max_output_tokens=request.max_tokens)
        if completion.finish_reason in CUT_OFF:
            completion = _better(
                completion,
                client.complete(turns(request, BRIEFER), max_output_tokens=request.max_tokens),
            )
    except Refusal:
        log.warning("the model refused to summarise a session: its summary does not change")
        return ""
    content = completion.content.strip()
    if is_refusal(content):
        log.warning("the model refused to summarise a session: its summary does not change")
        return ""
    if completion.finish_reason in CUT_OFF:
        content = _whole_sentences(content)
    if content and _lost_the_previous(request, tokens.count(content)):
        log.warning("a model's summary lost content of the previous one: the previous one is kept")
        return ""
    return _within(content, request.max_tokens)


def _lost_the_previous(request: SummarizeRequest, size: int) -> bool:
    before = tokens.count(request.previous or "")
    is_long = before >= request.max_tokens / 4 and request.max_tokens >= MIN_LIMIT
    return is_long and size < MIN_SHARE * min(before, request.max_tokens)


def _better(first: Completion, second: Completion) -> Completion:
    """The second summary, unless it is also cut, and shorter."""
    if second.finish_reason in CUT_OFF and len(second.content) < len(first.content):
        return first
    return second if second.content.strip() else first


def _within(content: str, maximum: int) -> str:
    """At most that many tokens: whole sentences if there are any, else the beginning."""
    if tokens.count(content) <= maximum:
        return content
    beginning = cut(content, maximum)
    return _whole_sentences(beginning) or beginning


def _whole_sentences(text: str) -> str:
    """The text up to the end of its last whole sentence or line; empty if there is none."""
    ends = [match.end() for match in _SENTENCE_END.finditer(text)]
    return text[: ends[-1]].rstrip() if ends else ""


def prompt_of(kind: str) -> Prompt:
    return prompt.SHORT if kind == "short" else prompt.LONG


def turns(request: SummarizeRequest, share: float = 1.0) -> list[Turn]:
    """The prompt. It allows `share` of the words that fit."""
    system = prompt_of(request.kind).text
    if request.instructions and request.instructions.strip():
        system += prompt.INSTRUCTIONS.format(request.instructions.strip())
    # A previous summary that is longer than summaries may be now would push the messages aside.
    previous = cut((request.previous or "").strip(), 2 * request.max_tokens) or "(none)"
    user = prompt.REQUEST.format(
        previous="    " + "\n    ".join(previous.splitlines()),
        transcript=transcript(_newest(request.messages)),
        words=max(1, int(request.max_tokens * WORDS_PER_TOKEN * share)),
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
