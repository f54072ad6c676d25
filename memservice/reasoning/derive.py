"""Deriving with a language model: as a rule one call for a run of messages, whose answer can cite
only the messages in the prompt.

What does not fit into one answer is split: long messages from the start, a batch whose answer is
cut or refused when that happens.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from string import ascii_uppercase
from typing import Any

from memservice.domain import tokens
from memservice.domain.derived_rules import MAX_CONTENT_LENGTH
from memservice.domain.text.chunks import chunks
from memservice.reasoning import structured
from memservice.reasoning.client import ModelClient
from memservice.reasoning.models import Models
from memservice.reasoning.prompts import derive as prompt
from memservice.reasoning.transcript import called, cut, entry, name, transcript
from memservice.spi.llm import ContextTooLong, Refusal, Turn
from memservice.spi.reasoner import Derived, DeriveRequest, Statement, Utterance

PURPOSE = "deriver.representation"
MAX_STATEMENTS = 500
"""Of one batch; a batch of messages never states so much, so what is beyond is a model that cannot
stop."""
MARK_TOKENS = 5
"""Tokens of the number in front of a message, at most."""
PART_TOKENS = 1_500
"""A longer message is derived in parts of at most so many tokens."""
MIN_PART_TOKENS = 100
"""A message, or part of one, that is shorter is not split further."""
CALLS_PER_BATCH = 4
"""Calls for each batch, on average, after which nothing is split any more."""

_INTEGER = re.compile(r"\d+")
_LETTERS = re.compile(r"\b[A-Z]{1,3}\b")
_CONTENT_NAMES = ("content", "statement", "text", "fact", "conclusion")
_CITATION_NAMES = ("messages", "message", "sources", "source", "entries", "entry", "citations")


def derive(models: Models, request: DeriveRequest) -> Derived:
    """Statements in the order of the answers, each with keys of new messages by the observed peer;
    those without any are left out, and so is what is longer than any conclusion may be, or more
    than there can be."""
    batches = _batches(request, models.settings.deriver.max_input_tokens)
    if not batches:
        return Derived([])
    client = ModelClient(models, PURPOSE, models.settings.deriver.model_config, request.origin)
    run = _Run(models, client, len(batches), len(_own(request)))
    for batch in batches:
        run.derive(batch)
    return Derived(
        _distinct(run.statements),
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
        """Derive from the numbered entries of a request; split it if the answer shows that it has
        to be."""
        self._calls_left -= 1
        asked = prompt_of(request, self._settings.deriver.max_input_tokens)
        self.scaffold_tokens += asked.scaffold_tokens
        self.hit_cap = self.hit_cap or asked.hit_cap
        own = _own(request)
        try:
            answer = structured.ask_once_more(
                self._client,
                asked.turns,
                prompt.SCHEMA,
                shape=lambda value: _shaped(value, len(own)),
                max_output_tokens=2 * self._settings.llm.default_max_tokens if doubled else None,
                check=_CitationCheck(),
            )
        except Refusal:
            self._isolate(request, own)
            return
        except ContextTooLong:
            if not self._halve(request, own):
                raise
            return
        keys = {number: request.messages[index].key for number, index in enumerate(own, 1)}
        letters = {mark: request.messages[index].key for index, mark in _letters(request).items()}
        statements = _statements(answer.value["statements"], keys, letters)
        self.statements += statements
        if answer.is_cut:
            cited = {key for statement in statements for key in statement.message_keys}
            self._rest(request, own, cited, doubled)
        elif answer.value["statements"] and not _cites(answer.value["statements"]):
            self._halve(request, own)

    def _isolate(self, request: DeriveRequest, own: Sequence[int]) -> None:
        """Find the entries that are refused; the others are derived from."""
        if self._calls_left > 0 and len(own) == 1 and len(request.messages) > 1:
            # Another peer's message may be the cause.
            self.derive(replace(request, messages=[request.messages[own[0]]]))
        elif len(own) == 1 or not self._halve(request, own):
            self.refused += [request.messages[index].key for index in own]

    def _rest(
        self, request: DeriveRequest, own: Sequence[int], cited: set[int], doubled: bool
    ) -> None:
        """Derive from the entries that a cut answer does not cite; from a single one again, with
        more room, then in halves."""
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
        if self._has_objected or not value["statements"] or _cites(value["statements"]):
            return None
        self._has_objected = True
        return prompt.UNCITED


@dataclass(frozen=True, slots=True)
class Asked:
    """What the model is given."""

    turns: Sequence[Turn]
    scaffold_tokens: int
    """Of everything but the messages."""
    hit_cap: bool
    """Was something of the messages left out?"""


def prompt_of(request: DeriveRequest, maximum: int) -> Asked:
    """At most that many tokens, as far as the messages can be shortened."""
    system = _system(request)
    scaffold = tokens.count(system) + tokens.count(_user(request, []))
    messages = _fitting(request, maximum - scaffold)
    return Asked(
        [Turn("system", system), Turn("user", _user(request, messages))],
        scaffold,
        messages != list(request.messages),
    )


def _system(request: DeriveRequest) -> str:
    if request.instructions and request.instructions.strip():
        return prompt.PROMPT.text + prompt.INSTRUCTIONS.format(request.instructions.strip())
    return prompt.PROMPT.text


def _own(request: DeriveRequest) -> list[int]:
    """Indexes of the messages that the model may cite. It knows them by their numbers in this list,
    from 1."""
    return [index for index, message in enumerate(request.messages) if _is_own(request, message)]


def _is_own(request: DeriveRequest, message: Utterance) -> bool:
    return message.new and message.author == request.observed and bool(message.content.strip())


def _letters(request: DeriveRequest) -> dict[int, str]:
    """By index, the letters by which the model names the messages that it may not cite: A … Z, AA …
    Whitespace has none."""
    others = [
        index
        for index, message in enumerate(request.messages)
        if message.content.strip() and not _is_own(request, message)
    ]
    return {index: _letter(number) for number, index in enumerate(others)}


def _letter(number: int) -> str:
    before, last = divmod(number, len(ascii_uppercase))
    return (_letter(before - 1) if before else "") + ascii_uppercase[last]


def _part(request: DeriveRequest, own: Sequence[int]) -> DeriveRequest:
    """The request with some of its own messages, and what others said before and between these."""
    first = own[0]
    while first > 0 and not _is_own(request, request.messages[first - 1]):
        first -= 1
    chosen = set(own)
    return replace(
        request,
        messages=[
            message
            for index, message in enumerate(request.messages[: own[-1] + 1])
            if index in chosen or (index >= first and not _is_own(request, message))
        ],
    )


def _batches(request: DeriveRequest, maximum: int) -> list[DeriveRequest]:
    """The request itself, as a rule. With long messages, several of about `PART_TOKENS` of its own
    messages each."""
    own = _own(request)
    scaffold = tokens.count(_system(request)) + tokens.count(_user(request, []))
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
    return [batch for batch in requests if _own(batch)]


def _texts(text: str, limit: int) -> list[str]:
    """A text in parts of at most so many tokens, cut at paragraphs if possible."""
    size = tokens.count(text)
    if size <= limit or len(text) < 2:
        return [text]
    number = -(-size // limit)
    parts = [chunk.text for chunk in chunks(text, -(-len(text) // number))]
    return [inner for part in parts if part.strip() for inner in _texts(part, limit)]


def _user(request: DeriveRequest, messages: Sequence[Utterance]) -> str:
    number = 0
    letters = {request.messages[index].key: mark for index, mark in _letters(request).items()}
    lines = []
    for message in messages:
        if _is_own(request, message):
            number += 1
            lines.append(entry(message, str(number)))
        elif message.content.strip():
            lines.append(entry(message, letters[message.key]))
    present = {message.author for message in messages} | {request.observed}
    names = called(
        {slug: shown for slug, shown in request.names.items() if slug in present}, present
    )
    return prompt.REQUEST.format(
        observed=name(request.observed),
        names="".join(f"{line}\n" for line in names),
        transcript="\n".join(lines),
        numbers=", ".join(f"[{number}]" for number in range(1, len(_own(request)) + 1)),
    )


def _fitting(request: DeriveRequest, maximum: int) -> list[Utterance]:
    """The messages within a budget of tokens: context goes first, the oldest before the newer, then
    the texts are cut evenly."""
    sizes = [tokens.count(transcript([message])) + MARK_TOKENS for message in request.messages]
    total = sum(sizes)
    kept: list[tuple[Utterance, int]] = []
    for message, size in zip(request.messages, sizes, strict=True):
        if total > maximum and not _is_own(request, message):
            total -= size
        else:
            kept.append((message, size))
    if total <= maximum:
        return [message for message, _ in kept]
    share = maximum // len(kept)
    return [
        replace(
            message,
            content=cut(message.content, max(1, share - (size - tokens.count(message.content)))),
        )
        for message, size in kept
    ]


def _shaped(value: Any, entries: int) -> Any:
    """The document in the requested form, as far as it can be told: a bare list, texts instead of
    objects, other names, numbers as text. A statement without citation takes the only entry."""
    if isinstance(value, dict) and "statements" not in value and len(value) == 1:
        (value,) = value.values()
    items = value.get("statements") if isinstance(value, dict) else value
    if not isinstance(items, list):
        return value
    return {"statements": [_shaped_item(item, entries) for item in items]}


def _shaped_item(item: Any, entries: int) -> Any:
    if isinstance(item, str):
        item = {"content": item}
    if not isinstance(item, dict):
        return item
    content = next((item[key] for key in _CONTENT_NAMES if isinstance(item.get(key), str)), None)
    cited: Any = next((item[key] for key in _CITATION_NAMES if key in item), [])
    numbers = [
        int(digits)
        for number in (cited if isinstance(cited, list) else [cited])
        for digits in _INTEGER.findall(str(number))[:20]
        if len(digits) < 10
    ]
    if not numbers and entries == 1:
        numbers = [1]
    named = item.get("confirms")
    letters = [
        letter
        for mark in (named if isinstance(named, list) else [named])
        if isinstance(mark, str)
        for letter in _LETTERS.findall(mark)[:20]
    ]
    basis = "confirmed" if item.get("basis") == "confirmed" else "said"
    shaped = {"messages": numbers, "basis": basis, "confirms": letters}
    return shaped | ({} if content is None else {"content": content})


def _cites(items: Sequence[Mapping[str, Any]]) -> bool:
    return any(item["messages"] for item in items)


def _statements(
    items: Sequence[Mapping[str, Any]], keys: Mapping[int, int], letters: Mapping[str, int]
) -> list[Statement]:
    statements = []
    for item in items:
        content = item["content"].strip()
        cited = tuple(dict.fromkeys(keys[number] for number in item["messages"] if number in keys))
        if content and cited and len(content) <= MAX_CONTENT_LENGTH:
            confirmed = (letters[mark] for mark in item["confirms"] if mark in letters)
            statements.append(
                Statement(
                    content, cited, basis=item["basis"], confirms=tuple(dict.fromkeys(confirmed))
                )
            )
    return statements


def _distinct(statements: Sequence[Statement]) -> list[Statement]:
    """Each statement once, with all the messages that it comes from; `MAX_STATEMENTS` at most."""
    distinct: dict[str, Statement] = {}
    for statement in statements:
        same = " ".join(statement.content.casefold().split())
        if same not in distinct and len(distinct) >= MAX_STATEMENTS:
            break
        before = distinct.get(same, replace(statement, message_keys=(), confirms=()))
        distinct[same] = replace(
            before,
            message_keys=tuple(dict.fromkeys((*before.message_keys, *statement.message_keys))),
            confirms=tuple(dict.fromkeys((*before.confirms, *statement.confirms))),
        )
    return list(distinct.values())
