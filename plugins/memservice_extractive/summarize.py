"""Summaries without a model: the most central sentences, each once, as "speaker: sentence" in
chronological order."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from memservice.spi.reasoner import Summarized, SummarizeRequest
from memservice_extractive.derive import judged
from memservice_extractive.language import detect, words
from memservice_extractive.sentences import split
from memservice_extractive.worth import content_units

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAX_LINES = {"short": 16, "long": 48}
_SHARE = 0.5
"""Maximum share of the candidate lines in a summary, but at least `_MIN_SENTENCES` lines if there
are that many."""
_MIN_SENTENCES = 4
_LONG = 800
"""Characters of a message beyond which its sentences are found by their signs alone. A shorter one
was split when its statements were derived, and the result is cached."""
_POOL_SIZE = 400
"""Maximum candidates that are compared with one another: the most central ones."""
_DIMENSION = 1024
_RELEVANCE = 0.7
"""Weight of centrality; the rest is the weight of not repeating chosen lines."""
_PREVIOUS_BONUS = 1.1
"""Factor for lines of the previous summary, which were important enough then."""


class _Line(Struct, frozen=True):
    position: int
    """Chronological; lines of the previous summary come first."""
    text: str
    weight: float = 1.0


def summarize(request: SummarizeRequest) -> Summarized:
    """Lines within `max_tokens`; empty if there is nothing to summarise."""
    from memservice.domain import tokens

    lines = _unique(_previous(request.previous), _candidates(request))
    if not lines:
        return Summarized("")
    maximum = min(
        MAX_LINES.get(request.kind, MAX_LINES["short"]),
        max(_MIN_SENTENCES, math.ceil(_SHARE * len(lines))),
    )
    chosen: list[_Line] = []
    spent = 0
    for line in _ranked(lines, maximum):
        cost = tokens.count(line.text + "\n")
        if spent + cost <= request.max_tokens:
            chosen.append(line)
            spent += cost
    # the counts of single lines may not add up exactly
    while chosen and tokens.count(_joined(chosen)) > request.max_tokens:
        chosen.pop()
    return Summarized(_joined(chosen))


def _joined(lines: Iterable[_Line]) -> str:
    return "\n".join(line.text for line in sorted(lines, key=lambda line: line.position))


def _previous(summary: str | None) -> list[str]:
    """Lines of the previous summary. Running text, as models write it, is split into sentences."""
    lines = []
    for line in (summary or "").splitlines():
        text = " ".join(line.split())
        if not text:
            continue
        speaker, colon, _ = text.partition(": ")
        labelled = bool(colon) and " " not in speaker
        lines.extend([text] if labelled else split(text, detect(text)))
    return lines


def _candidates(request: SummarizeRequest) -> list[str]:
    """Sentences of the messages that are worth keeping; if there are none, all sentences with
    content."""
    names = {message.author for message in request.messages}
    statements: list[str] = []
    others: list[tuple[str, str]] = []
    for message in request.messages:
        exact = len(message.content) <= _LONG
        for sentence, judgement in judged(message.content, message.author, names, exact=exact):
            if judgement.keep:
                statements.append(f"{message.author}: {sentence}")
            else:
                others.append((message.author, sentence))
    return statements or [
        f"{author}: {sentence}"
        for author, sentence in others
        if content_units(sentence, detect(sentence))
    ]


def _unique(previous: Sequence[str], candidates: Sequence[str]) -> list[_Line]:
    keys: set[tuple[str, ...]] = set()
    lines = []
    for index, text in enumerate((*previous, *candidates)):
        weight = _PREVIOUS_BONUS if index < len(previous) else 1.0
        key = tuple(words(text)) or (text,)
        if key not in keys:
            keys.add(key)
            lines.append(_Line(index, text, weight))
    return lines


def _ranked(lines: Sequence[_Line], maximum: int) -> list[_Line]:
    """Up to `maximum` lines, best first: central to all lines, and unlike the lines chosen before
    (maximal marginal relevance)."""
    import numpy as np

    vectors = _vectors([line.text for line in lines])
    centre = vectors.sum(axis=0)
    centre /= np.linalg.norm(centre) or 1.0
    central = (vectors @ centre) * np.array([line.weight for line in lines])
    pool = np.argsort(-central, kind="stable")[:_POOL_SIZE]
    vectors, central = vectors[pool], central[pool]
    nearest = np.zeros(len(pool))
    chosen: list[int] = []
    while len(chosen) < min(maximum, len(pool)):
        score = _RELEVANCE * central - (1 - _RELEVANCE) * nearest
        score[chosen] = -np.inf
        best = int(np.argmax(score))
        chosen.append(best)
        nearest = np.maximum(nearest, vectors @ vectors[best])
    return [lines[int(pool[index])] for index in chosen]


def _vectors(texts: Sequence[str]) -> NDArray[np.float64]:
    """One unit vector per text: its terms, weighted by their rarity among these texts and hashed
    into `_DIMENSION` dimensions."""
    import zlib

    import numpy as np

    from memservice.domain.text.analysis import analyse

    bags = [Counter(analyse(text)) for text in texts]
    document_counts = Counter(term for bag in bags for term in bag)
    columns = {
        term: (
            zlib.crc32(term.encode("utf-8", "surrogatepass")) % _DIMENSION,
            math.log(1 + len(texts) / count),
        )
        for term, count in document_counts.items()
    }
    rows = np.zeros((len(texts), _DIMENSION))
    for row, bag in zip(rows, bags, strict=True):
        weights: dict[int, float] = {}
        for term, count in bag.items():
            column, rarity = columns[term]
            weights[column] = weights.get(column, 0.0) + (1 + math.log(count)) * rarity
        row[list(weights)] = list(weights.values())
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(lengths == 0, 1.0, lengths))
