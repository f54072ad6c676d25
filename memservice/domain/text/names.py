"""Finds the words of a query that name a peer.

Peers are looked up by indexed tokens (`PeerName.token`), never by loading them all. A token that is
an ordinary word and comes from the peer's id alone is stored with the prefix `CAPITALISED`. A query
looks for that form only if it writes the word with a capital letter: "what may I eat" does not name
the peer `may`, but "what did May eat" does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from memservice.domain.text.folding import (
    HAN_RUN,
    MAX_TERM,
    SCRIPT_RUN,
    UNSPACED,
    fold,
    is_wordlike,
    safe,
)
from memservice.domain.text.words import OPENERS, ORDINARY_WORDS, STOP_WORDS, TITLES

CAPITALISED = "^"
"""Marks a token that names its peer only when the query capitalises it. No term contains it."""

MAX_TOKENS = 8
"""Maximum number of tokens of one peer."""

MAX_CANDIDATES = 64

_SENTENCE_END = frozenset('.!?\u3002\uff01\uff1f\n:;"\u201c')
_POSSESSIVE = re.compile(r"(?:['’ʼ`]s|['’ʼ`])$", re.IGNORECASE)


def _spans(text: str) -> Iterator[tuple[int, int, bool]]:
    """Start, end and "opens a sentence" of each word. An apostrophe after a letter belongs to the
    word."""
    start, opens, length = -1, True, len(text)
    for index, char in enumerate(text):
        inside = is_wordlike(char) or (start >= 0 and char in "'’ʼ`")
        if inside and start < 0:
            start = index
        elif not inside:
            if start >= 0:
                yield start, index, opens
                start, opens = -1, False
            if char in _SENTENCE_END:
                opens = True
    if start >= 0:
        yield start, length, opens


def _word_forms(word: str, opens: bool) -> list[str]:
    """The tokens that one written word of a query may match."""
    stem = _POSSESSIVE.sub("", word)
    token = safe(fold(stem).replace("'", ""))
    if len(token) < 2 or token.isdecimal() or token in STOP_WORDS:
        return []
    capital = stem[:1].isupper() and not (opens and token in OPENERS and stem == word)
    return [token, CAPITALISED + token] if capital and token in ORDINARY_WORDS else [token]


def _unspaced_forms(word: str) -> list[str]:
    """Possible names in a run without spaces: whole runs of one script, their beginnings, and short
    stretches of Han."""
    folded = fold(word)
    whole = [run[0] for run in SCRIPT_RUN.finditer(folded)]
    beginnings = [
        run[:n] for run in whole for n in (2, 3, 4) if n < len(run) and not HAN_RUN.match(run)
    ]
    stretches = [
        run[i : i + n]
        for run in whole
        if HAN_RUN.match(run)
        for n in (2, 3, 4)
        for i in range(len(run) - n + 1)
    ]
    return [safe(form) for form in (folded, *whole, *beginnings, *stretches)]


def name_tokens(slug: str, display_name: str | None = None) -> list[str]:
    """The tokens by which a query may name a peer: distinct, at most 8, words of its display name
    before those of its id.

    Numbers, single letters, titles and stop words are not names.
    """
    tokens: dict[str, None] = {}
    for source, is_display_name in ((display_name or "", True), (slug, False)):
        for start, end, _ in _spans(source[:512]):
            word = source[start:end]
            token = safe(fold(word).replace("'", ""))
            if (
                not token
                or token.isdecimal()
                or token in TITLES
                or token in STOP_WORDS
                or (len(token) < 2 and token.isascii())
            ):
                continue
            if UNSPACED.search(token):
                tokens.update(
                    dict.fromkeys(
                        [
                            token,
                            *(
                                safe(run[0])
                                for run in SCRIPT_RUN.finditer(token)
                                if len(run[0]) > 1
                            ),
                        ]
                    )
                )
            elif is_display_name or token not in ORDINARY_WORDS:
                tokens[token] = None
            elif token not in tokens:
                tokens[CAPITALISED + token] = None
    return list(tokens)[:MAX_TOKENS]


def candidate_name_tokens(query: str) -> list[str]:
    """Every token by which the query may name a peer: distinct, at most 64, for one indexed
    look-up."""
    tokens: dict[str, None] = {}
    unspaced: list[str] = []
    for start, end, opens in _spans(query[:4096]):
        word = query[start:end]
        if UNSPACED.search(word):
            unspaced.extend(_unspaced_forms(word))
        else:
            tokens.update(dict.fromkeys(_word_forms(word, opens)))
    tokens.update(dict.fromkeys(form for form in unspaced if 1 < len(form) <= MAX_TERM))
    return list(tokens)[:MAX_CANDIDATES]


def without_names(query: str, names: Iterable[str]) -> str:
    """The query without the words that match `names`: tokens of `candidate_name_tokens` that the
    look-up confirmed.

    Empty if the query consists of names only.
    """
    name_set = frozenset(names)
    if not name_set:
        return query
    pieces: list[str] = []
    last = 0
    for start, end, opens in _spans(query):
        word = query[start:end]
        if UNSPACED.search(word):
            remaining = fold(word)
            for name in sorted(name_set, key=len, reverse=True):
                if UNSPACED.search(name):
                    remaining = remaining.replace(name, "")
            if remaining != fold(word):
                pieces.extend((query[last:start], remaining))
                last = end
        elif not name_set.isdisjoint(_word_forms(word, opens)):
            pieces.append(query[last:start])
            last = end
    pieces.append(query[last:])
    text = " ".join("".join(pieces).split())
    return text if any(map(str.isalnum, text)) else ""
