"""Exact o200k token counts, offline: the unit of every budget and of the cumulative counts in the
store.

The vocabulary is loaded at first use (about 0.1 s), from `rs-bpe`, else from `bpe-openai`; both
give the same counts.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator

from memservice.domain.errors import ConfigurationError

COUNTER = "o200k_base"
"""The vocabulary of the counts. Its name is recorded in the store: counts of different vocabularies
are never added."""

_lock = threading.Lock()
_loaded: tuple[str, Callable[[str], int]] | None = None

_PIECE = 40_000
"""Characters per call of `bpe-openai`: it rejects 200,000 tokens, and a character has at most
four."""

_MAX_TOKEN_LENGTH = 128
"""Characters of the vocabulary's longest token."""

_SAFE_CUT = re.compile(r"[^\W_](?=[ \n,.:;!?\u3001\u3002\uff0c])")
"""A letter or digit before a blank or a stop always ends one of the vocabulary's words, so a cut
between them changes no count."""


def _pieces(text: str) -> Iterator[str]:
    """The text in pieces whose counts add up to its own. Only a word longer than 20,000 characters
    is cut."""
    start = 0
    while len(text) - start > _PIECE:
        cut = start + _PIECE
        for match in _SAFE_CUT.finditer(text, start + _PIECE // 2, start + _PIECE + 1):
            cut = match.end()
        yield text[start:cut]
        start = cut
    yield text[start:]


def _rs_bpe() -> Callable[[str], int]:
    from rs_bpe.bpe import openai  # type: ignore[import-not-found, unused-ignore]

    count: Callable[[str], int] = openai.o200k_base().count
    return count


def _bpe_openai() -> Callable[[str], int]:
    import bpe_openai  # type: ignore[import-not-found, unused-ignore]

    encode = bpe_openai.get_encoding(COUNTER).encode_ordinary
    return lambda text: sum(len(encode(piece)) for piece in _pieces(text))


_IMPLEMENTATIONS: tuple[tuple[str, Callable[[], Callable[[str], int]]], ...] = (
    ("rs-bpe", _rs_bpe),
    ("bpe-openai", _bpe_openai),
)


def _load() -> tuple[str, Callable[[str], int]]:
    global _loaded
    with _lock:
        if _loaded is None:
            for name, load in _IMPLEMENTATIONS:
                try:
                    _loaded = (name, load())
                    break
                except ImportError:
                    continue
            else:
                raise ConfigurationError(
                    "Tokens cannot be counted: neither rs-bpe nor bpe-openai is installed "
                    "for this Python. "
                    "Type `pip install rs-bpe` (or, where it has no wheel, `pip install "
                    "bpe-openai`)."
                )
        return _loaded


def count(text: str) -> int:
    """Tokens of the text in the o200k vocabulary. Special tokens count as plain text.

    Raises `ConfigurationError` if no implementation is installed, `UnicodeEncodeError` for a lone
    surrogate.
    """
    return (_loaded or _load())[1](text)


def cut(text: str, maximum: int) -> str:
    """The longest beginning of the text with at most `maximum` tokens, to a character or two; the
    whole text if it has no more."""
    # A token is at least one byte.
    if len(text) * 4 <= maximum or len(text.encode()) <= maximum or count(text) <= maximum:
        return text
    low, high = 0, min(len(text), maximum * _MAX_TOKEN_LENGTH)
    while low < high:
        middle = (low + high + 1) // 2
        if count(text[:middle]) <= maximum:
            low = middle
        else:
            high = middle - 1
    return text[:low]


def counter_id() -> str:
    """The name under which counts are recorded in the store. It does not depend on the
    implementation."""
    return COUNTER


def implementation() -> str:
    """The package that counts, for start-up messages and diagnosis."""
    return (_loaded or _load())[0]
