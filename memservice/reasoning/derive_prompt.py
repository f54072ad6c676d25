"""The prompt of the deriver's model: the new messages and their context, within a number of tokens.

If the prompt is too long, these parts are left out, one after the other, until it fits: stored
conclusions (the least related first), the card, the summary, messages that are context (the oldest
first). Then the new messages are cut evenly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from string import ascii_uppercase
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from memservice.domain import tokens
from memservice.reasoning.prompts import derive as prompt
from memservice.reasoning.render import text_of
from memservice.reasoning.transcript import called, cut, entry, name, transcript
from memservice.spi.llm import Turn
from memservice.spi.reasoner import DeriveContext, DeriveRequest, Known, Utterance

Item = TypeVar("Item")

MARK_TOKENS = 5
"""Tokens of the number in front of a message, at most."""
HISTORY_TOKENS = 800
"""Tokens of all messages before the first new one; the last of them is always included."""
HISTORY_MESSAGE_TOKENS = 300
"""Tokens of each of them."""
SUMMARY_TOKENS = 400
CARD_TOKENS = 400
CONCLUSION_TOKENS = 600
MAX_CONCLUSIONS = 10
MAX_CONCLUSION_CHARS = 400
"""Characters of each stored conclusion."""


class DerivePrompt(Struct, frozen=True):
    """The prompt of one call."""

    turns: Sequence[Turn]
    scaffold_tokens: int
    """Tokens of everything except the messages."""
    hit_cap: bool
    """Whether a part was left out because the prompt would be too long."""
    context: DeriveContext
    """The part of the context that is in the prompt."""


def bounded(request: DeriveRequest) -> DeriveRequest:
    """The request with no more context than a prompt may have."""
    context = request.context
    conclusions = _whole(
        context.held[:MAX_CONCLUSIONS],
        CONCLUSION_TOKENS,
        lambda item: _conclusion_line("c10", item),
    )
    return replace(
        request,
        messages=_bounded_history(request),
        context=DeriveContext(
            cut(context.summary, SUMMARY_TOKENS) if context.summary else None,
            _whole(context.card, CARD_TOKENS, _card_line),
            conclusions,
        ),
    )


def prompt_of(request: DeriveRequest, maximum: int) -> DerivePrompt:
    """A prompt of at most `maximum` tokens, as far as the messages can be shortened."""
    system = _system_tokens(system_text(request))
    sizes = [_size(message) for message in request.messages]
    needed = sum(sizes)
    context = request.context
    while True:
        scaffold = system + tokens.count(user_text(request, [], context))
        smaller = _smaller(context)
        if scaffold + needed <= maximum or smaller is None:
            break
        context = smaller
    messages = _fitting(request, sizes, maximum - scaffold)
    return DerivePrompt(
        [Turn("system", system_text(request)), Turn("user", user_text(request, messages, context))],
        scaffold,
        messages != list(request.messages) or context != request.context,
        context,
    )


def scaffold_tokens(request: DeriveRequest) -> int:
    """Tokens of a prompt without messages and without context."""
    user = tokens.count(user_text(request, [], DeriveContext()))
    return _system_tokens(system_text(request)) + user


@lru_cache(64)
def _system_tokens(text: str) -> int:
    """Counted once: most requests have the same."""
    return tokens.count(text)


def system_text(request: DeriveRequest) -> str:
    if request.instructions and request.instructions.strip():
        return prompt.PROMPT.text + prompt.INSTRUCTIONS.format(request.instructions.strip())
    return prompt.PROMPT.text


def own_indexes(request: DeriveRequest) -> list[int]:
    """Indexes of the messages that the model may cite. It refers to them by their numbers in this
    list, from 1."""
    return [index for index, message in enumerate(request.messages) if is_own(request, message)]


def is_own(request: DeriveRequest, message: Utterance) -> bool:
    """Whether it is a new message of the observed peer that is not blank."""
    return message.new and message.author == request.observed and bool(message.content.strip())


def letters(request: DeriveRequest) -> dict[int, str]:
    """By index, the letters by which the model names the messages that it may not cite: A … Z, AA …
    Whitespace has none."""
    others = [
        index
        for index, message in enumerate(request.messages)
        if message.content.strip() and not is_own(request, message)
    ]
    return {index: _letter(number) for number, index in enumerate(others)}


def _letter(number: int) -> str:
    before, last = divmod(number, len(ascii_uppercase))
    return (_letter(before - 1) if before else "") + ascii_uppercase[last]


def held_ids(context: DeriveContext) -> dict[str, Known]:
    """Short id in the prompt (`c1` …) → stored conclusion."""
    return {f"c{number}": item for number, item in enumerate(context.held, 1)}


def _smaller(context: DeriveContext) -> DeriveContext | None:
    """The context without its least important part; None if it is empty."""
    if context.held:
        return replace(context, held=context.held[:-1])
    if context.card:
        return replace(context, card=())
    return None if context.summary is None else replace(context, summary=None)


def _whole(items: Sequence[Item], maximum: int, line: Callable[[Item], str]) -> tuple[Item, ...]:
    """The first items whose lines have at most `maximum` tokens together."""
    fitting: list[Item] = []
    for item in items:
        maximum -= tokens.count(line(item)) + 1
        if maximum < 0:
            break
        fitting.append(item)
    return tuple(fitting)


def _bounded_history(request: DeriveRequest) -> list[Utterance]:
    """The messages, those before the first new one within their bounds."""
    own = own_indexes(request)
    first = own[0] if own else len(request.messages)
    history: list[Utterance] = []
    left = HISTORY_TOKENS
    for message in reversed(request.messages[:first]):
        is_last = not history
        bounded = message
        # A question is shown whole, since the next message may answer it.
        if not message.new and not (is_last and message.author != request.observed):
            bounded = replace(message, content=cut(message.content, HISTORY_MESSAGE_TOKENS))
        left -= 0 if message.new else _size(bounded)
        if left < 0 and not is_last:
            break
        history.append(bounded)
    return [*reversed(history), *request.messages[first:]]


def _size(message: Utterance) -> int:
    return tokens.count(transcript([message])) + MARK_TOKENS


def user_text(request: DeriveRequest, messages: Sequence[Utterance], context: DeriveContext) -> str:
    number = 0
    marks = {request.messages[index].key: mark for index, mark in letters(request).items()}
    lines = []
    for message in messages:
        if is_own(request, message):
            number += 1
            lines.append(entry(message, str(number)))
        elif message.content.strip():
            lines.append(entry(message, marks[message.key]))
    present = {message.author for message in messages} | {request.observed}
    names = called(
        {slug: full_name for slug, full_name in request.names.items() if slug in present}, present
    )
    return prompt.REQUEST.format(
        observed=name(request.observed),
        names="".join(f"{line}\n" for line in names),
        context=_context(context),
        transcript="\n".join(lines),
        numbers=", ".join(f"[{number}]" for number in range(1, len(own_indexes(request)) + 1)),
    )


def _context(context: DeriveContext) -> str:
    """The sections in front of the conversation, each with a blank line behind it."""
    conclusions = [_conclusion_line(mark, item) for mark, item in held_ids(context).items()]
    summary = [f"    {text_of(context.summary, len(context.summary))}"] if context.summary else []
    sections = (
        (prompt.SUMMARY, summary),
        (prompt.CARD, [_card_line(line) for line in context.card]),
        (prompt.HELD, conclusions),
    )
    return "".join("\n".join([heading, *lines, "", ""]) for heading, lines in sections if lines)


def _card_line(line: str) -> str:
    return f"- {' '.join(line.split())}"


def _conclusion_line(mark: str, item: Known) -> str:
    level = "" if item.level == "explicit" else f" ({item.level})"
    return f"[{mark}] {item.said_at:%Y-%m-%d}{level}: {text_of(item.content, MAX_CONCLUSION_CHARS)}"


def _fitting(request: DeriveRequest, sizes: Sequence[int], maximum: int) -> list[Utterance]:
    """The messages, of these sizes, within a budget of tokens: context is left out first, the
    oldest before the newer, then the texts are cut evenly."""
    total = sum(sizes)
    remaining: list[tuple[Utterance, int]] = []
    for message, size in zip(request.messages, sizes, strict=True):
        if total > maximum and not is_own(request, message):
            total -= size
        else:
            remaining.append((message, size))
    if total <= maximum:
        return [message for message, _ in remaining]
    share = maximum // len(remaining)
    return [
        replace(
            message,
            content=cut(message.content, max(1, share - (size - tokens.count(message.content)))),
        )
        for message, size in remaining
    ]
