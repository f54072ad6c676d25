"""Summaries without a model: the most central sentences, each once, as "speaker: sentence" in order
of time."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

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
"""At most this share of the candidate lines is kept, but no fewer than `_MIN_SENTENCES` if there
are as many."""
_MIN_SENTENCES = 4
_POOL = 400
"""Candidates that are compared with one another; of more, the most central."""
_DIMENSION = 1024
_RELEVANCE = 0.7
"""Weight of being central against not repeating what is chosen already."""
_KEPT_BONUS = 1.1
"""A line that was important enough for the last summary is a little more so than a new one."""


@dataclass(frozen=True, slots=True)
class _Line:
    place: int
    """Order of time: lines of the previous summary come first."""
    text: str
    weight: float = 1.0


def summarize(request: SummarizeRequest) -> Summarized:
    """Lines within `max_tokens`; empty where nobody said anything."""
    from memservice.domain import tokens

    lines = _unique([*_previous(request.previous), *_said(request)])
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
    # counts of parts need not add up exactly
    while chosen and tokens.count(_joined(chosen)) > request.max_tokens:
        chosen.pop()
    return Summarized(_joined(chosen))


def _joined(lines: Iterable[_Line]) -> str:
    return "\n".join(line.text for line in sorted(lines, key=lambda line: line.place))


def _previous(summary: str | None) -> list[str]:
    """Lines of the previous summary; running text, as a model writes it, by its sentences."""
    found = []
    for line in (summary or "").splitlines():
        text = " ".join(line.split())
        if not text:
            continue
        speaker, colon, _ = text.partition(": ")
        labelled = bool(colon) and " " not in speaker
        found.extend([text] if labelled else split(text, detect(text)))
    return found


def _said(request: SummarizeRequest) -> list[tuple[str, float]]:
    """What is worth repeating of the messages; if nothing is, whatever has content."""
    names = {message.author for message in request.messages}
    worth, rest = [], []
    for message in request.messages:
        for sentence, judgement in judged(message.content, message.author, names):
            entry = (f"{message.author}: {sentence}", 1.0)
            if judgement.keep:
                worth.append(entry)
            elif content_units(sentence, detect(sentence)):
                rest.append(entry)
    return worth or rest


def _unique(entries: Sequence[str | tuple[str, float]]) -> list[_Line]:
    seen: set[tuple[str, ...]] = set()
    lines = []
    for index, entry in enumerate(entries):
        text, weight = (entry, _KEPT_BONUS) if isinstance(entry, str) else entry
        key = tuple(words(text)) or (text,)
        if key not in seen:
            seen.add(key)
            lines.append(_Line(index, text, weight))
    return lines


def _ranked(lines: Sequence[_Line], maximum: int) -> list[_Line]:
    """Up to `maximum` lines, best first: central to all that was said, and unlike those before
    (maximal marginal relevance)."""
    import numpy as np

    vectors = _vectors([line.text for line in lines])
    centre = vectors.sum(axis=0)
    centre /= np.linalg.norm(centre) or 1.0
    central = (vectors @ centre) * np.array([line.weight for line in lines])
    pool = np.argsort(-central, kind="stable")[:_POOL]
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
    """One row of length 1 a text: its terms, weighted by rarity among these texts, hashed into
    `_DIMENSION` places."""
    import zlib

    import numpy as np

    from memservice.domain.text.analysis import analyse

    bags = [Counter(analyse(text)) for text in texts]
    spread = Counter(term for bag in bags for term in bag)
    rows = np.zeros((len(texts), _DIMENSION))
    for row, bag in zip(rows, bags, strict=True):
        for term, times in bag.items():
            row[zlib.crc32(term.encode("utf-8", "surrogatepass")) % _DIMENSION] += (
                1 + math.log(times)
            ) * math.log(1 + len(texts) / spread[term])
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(lengths == 0, 1.0, lengths))
