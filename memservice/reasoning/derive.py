"""Deriving with a language model: as a rule one call for a run of messages, whose answer can cite
only the messages in the prompt.

What does not fit into one answer is split: long messages from the start, a batch whose answer is
cut or refused when that happens.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from memservice.domain import tokens
from memservice.domain.text.chunks import chunks
from memservice.reasoning import structured
from memservice.reasoning.client import ModelClient
from memservice.reasoning.derive_answer import cites, distinct, shaped, statements
from memservice.reasoning.derive_prompt import (
    bounded,
    held_ids,
    is_own,
    letters,
    own_indexes,
    prompt_of,
    scaffold_tokens,
)
from memservice.reasoning.models import Models
from memservice.reasoning.prompts import derive as prompt
from memservice.spi.llm import ContextTooLong, Refusal
from memservice.spi.reasoner import (
    DeriveContext,
    Derived,
    DeriveRequest,
    Statement,
    Utterance,
)

PURPOSE = "deriver.representation"
PART_TOKENS = 1_500
"""Maximum tokens of a part: longer messages are derived in parts."""
MIN_PART_TOKENS = 100
"""A message, or part of one, that is shorter is not split further."""
CALLS_PER_BATCH = 4
"""Calls for each batch, on average. Beyond them there are no further splits."""


def derive(models: Models, request: DeriveRequest) -> Derived:
    """Statements in the order of the answers, each with keys of new messages by the observed peer;
    those without any are left out, and so are statements that are too long for a conclusion, and
    those beyond the maximum number."""
    request = bounded(request)
    batches = _batches(request, models.settings.deriver.max_input_tokens)
    if not batches:
        return Derived([])
    client = ModelClient(models, PURPOSE, models.settings.deriver.model_config, request.origin)
    run = _Run(models, client, len(batches), len(own_indexes(request)))
    for batch in batches:
        run.derive(batch)
    return Derived(
        distinct(run.statements),
        client.spent,
        prompt.PROMPT.version,
        run.scaffold_tokens,
        run.hit_cap,
        tuple(dict.fromkeys(run.refused)),
        tuple(dict.fromkeys(run.unfinished)),
    )


class _Run:
    """The calls for one request."""

    def __init__(self, models: Models, client: ModelClient, batches: int, entries: int) -> None:
        self.statements: list[Statement] = []
        self.refused: list[int] = []
        self.unfinished: list[int] = []
        self.scaffold_tokens = 0
        self.hit_cap = False
        self._settings = models.settings
        self._client = client
        # Two calls isolate one message at each halving; this is enough for a few.
        self._calls_left = CALLS_PER_BATCH * batches + 6 * entries.bit_length() + 2

    def derive(self, request: DeriveRequest, doubled: bool = False) -> None:
        """Derive from the numbered entries of a request; split it if the request is too long, or
        the answer is cut, refused or without citations."""
        self._calls_left -= 1
        built = prompt_of(request, self._settings.deriver.max_input_tokens)
        self.scaffold_tokens += built.scaffold_tokens
        self.hit_cap = self.hit_cap or built.hit_cap
        own = own_indexes(request)
        try:
            answer = structured.ask_once_more(
                self._client,
                built.turns,
                prompt.SCHEMA,
                shape=lambda value: shaped(value, len(own)),
                max_output_tokens=2 * self._settings.llm.default_max_tokens if doubled else None,
                check=_CitationCheck(),
            )
        except Refusal:
            self._isolate(request, own)
            return
        except ContextTooLong:
            if request.context != DeriveContext() and self._calls_left > 0:
                self.derive(replace(request, context=DeriveContext()))
            elif not self._halve(request, own):
                raise
            return
        keys = {number: request.messages[index].key for number, index in enumerate(own, 1)}
        marks = {mark: request.messages[index].key for index, mark in letters(request).items()}
        new_statements = statements(
            answer.value["statements"], keys, marks, held_ids(built.context)
        )
        self.statements += new_statements
        if answer.is_cut:
            cited = {key for statement in new_statements for key in statement.message_keys}
            self._rest(request, own, cited, doubled)
        elif answer.value["statements"] and not cites(answer.value["statements"]):
            self._halve(request, own)

    def _isolate(self, request: DeriveRequest, own: Sequence[int]) -> None:
        """Find the entries that are refused; the others are derived from."""
        if self._calls_left > 0 and request.context != DeriveContext():
            self.derive(replace(request, context=DeriveContext()))
        elif self._calls_left > 0 and len(own) == 1 and len(request.messages) > 1:
            # Another peer's message may be the cause.
            self.derive(replace(request, messages=[request.messages[own[0]]]))
        elif len(own) == 1 or not self._halve(request, own):
            self.refused += [request.messages[index].key for index in own]

    def _rest(
        self, request: DeriveRequest, own: Sequence[int], cited: set[int], doubled: bool
    ) -> None:
        """Derive from the entries that a cut answer does not cite; from a single one again, with a
        higher limit, then in halves."""
        may_double = not (doubled or self._client.has_fixed_output)
        missing = [index for index in own if request.messages[index].key not in cited]
        again = missing or own[-1:]
        if self._calls_left > 0 and len(again) < len(own):
            self.derive(_part(request, again))
        elif self._calls_left > 0 and len(own) == 1 and may_double:
            self.derive(request, doubled=True)
        elif not self._halve(request, own):
            self.unfinished += [request.messages[index].key for index in again]

    def _halve(self, request: DeriveRequest, own: Sequence[int]) -> bool:
        """Derive from each half by itself; False if there are none, or calls are used up."""
        if self._calls_left <= 0:
            return False
        if len(own) > 1:
            middle = len(own) // 2
            halves = [_part(request, own[:middle]), _part(request, own[middle:])]
        else:
            message = request.messages[own[0]]
            size = tokens.count(message.content)
            if size <= MIN_PART_TOKENS:
                return False
            halves = [
                replace(request, messages=[replace(message, content=text)])
                for text in _texts(message.content, size // 2 + 1)
            ]
        for half in halves:
            self.derive(half)
        return True


class _CitationCheck:
    """Objects once to an answer in which no statement names its messages."""

    def __init__(self) -> None:
        self._has_objected = False

    def __call__(self, value: Any) -> str | None:
        if self._has_objected or not value["statements"] or cites(value["statements"]):
            return None
        self._has_objected = True
        return prompt.UNCITED


def _part(request: DeriveRequest, own: Sequence[int]) -> DeriveRequest:
    """The request with some of its own messages, and the others before and between them."""
    first = own[0]
    while first > 0 and not is_own(request, request.messages[first - 1]):
        first -= 1
    chosen = set(own)
    return replace(
        request,
        messages=[
            message
            for index, message in enumerate(request.messages[: own[-1] + 1])
            if index in chosen or (index >= first and not is_own(request, message))
        ],
    )


def _batches(request: DeriveRequest, maximum: int) -> list[DeriveRequest]:
    """The request itself, as a rule. With long messages, several of about `PART_TOKENS` of its own
    messages each."""
    own = own_indexes(request)
    scaffold = scaffold_tokens(request)
    limit = max(MIN_PART_TOKENS, min(PART_TOKENS, maximum - scaffold - 100))
    sizes = {index: tokens.count(request.messages[index].content) for index in own}
    if not own or max(sizes.values()) <= limit:
        return [request] if own else []
    batches: list[list[Utterance]] = [[]]
    filled = 0
    for index, message in enumerate(request.messages):
        texts = _texts(message.content, limit) if index in sizes else [message.content]
        for text in texts:
            size = tokens.count(text) if index in sizes else 0
            if filled and filled + size > limit:
                batches.append([])
                filled = 0
            batches[-1].append(replace(message, content=text))
            filled += size
    requests = [replace(request, messages=batch) for batch in batches]
    return [batch for batch in requests if own_indexes(batch)]


def _texts(text: str, limit: int) -> list[str]:
    """A text in parts of at most `limit` tokens, cut at paragraphs if possible."""
    size = tokens.count(text)
    if size <= limit or len(text) < 2:
        return [text]
    number = -(-size // limit)
    parts = [chunk.text for chunk in chunks(text, -(-len(text) // number))]
    return [inner for part in parts if part.strip() for inner in _texts(part, limit)]
