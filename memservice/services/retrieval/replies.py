"""The reply to a short question stands right behind it in a ranked list.

A question often has the words of a query, and its reply ("Never.", "We chose Ghent.") has none of
them. The share that neighbours get of each other's score puts such a reply in the middle of a
list, behind everything that shares a word.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from memservice.domain.positions import Position, PositionTable
from memservice.domain.ranking import MAX_SHORT
from memservice.domain.text.questions import is_question
from memservice.spi.storage import Transaction

FIRST = 30
"""Messages at the beginning of each list whose replies are placed. With 10, the first ten results
have as much of the evidence, and a prompt of 2,000 tokens up to one point less; 60 find no more
(benchmarks/recall/README.md, "Replies, days and repetitions")."""


def replies(
    tx: Transaction,
    workspace_key: int,
    lists: Iterable[Sequence[int]],
    positions: Mapping[int, Position],
    authors: Collection[int],
) -> dict[int, int]:
    """By the key of each question among the first of the lists, that of the message after it: by
    another author, one of `authors` if there are any. Both are short: at the end of a long answer,
    a question is seldom what matched, and a long reply has words of its own."""
    first = dict.fromkeys(key for keys in lists for key in keys[:FIRST])
    short = {key: positions[key] for key in first if positions[key].tokens <= MAX_SHORT}
    after = {
        key: reply
        for key, reply in _next(short, positions).items()
        if reply.tokens <= MAX_SHORT
        and reply.author_key != short[key].author_key
        and (not authors or reply.author_key in authors)
    }
    if not after:
        return {}
    contents = tx.messages.contents(workspace_key, list(after))
    return {
        key: reply.key
        for key, reply in after.items()
        if key in contents and is_question(contents[key])
    }


def with_replies(ranked: Sequence[int], reply_to: Mapping[int, int]) -> list[int]:
    """The list with each reply behind its question, unless it stands before it already."""
    placed: dict[int, None] = {}
    for key in ranked:
        placed[key] = None
        if key in reply_to:
            placed.setdefault(reply_to[key])
    return list(placed)


def _next(some: Mapping[int, Position], positions: Mapping[int, Position]) -> dict[int, Position]:
    """The positions after some of them, as far as they are known."""
    pairs = {(position.session_key, position.seq + 1): key for key, position in some.items()}
    if isinstance(positions, PositionTable):
        following = positions.at(pairs)
    else:
        following = {
            pair: position
            for position in positions.values()
            if (pair := (position.session_key, position.seq)) in pairs
        }
    return {pairs[pair]: position for pair, position in following.items()}
