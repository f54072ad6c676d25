"""Word stems by language, so that inflected forms of a word are equal."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from importlib import import_module

from memservice.domain.text.folding import fold

_MODULES = {
    "ar": "arabic",
    "de": "german",
    "el": "greek",
    "en": "english",
    "es": "spanish",
    "fr": "french",
    "hi": "hindi",
    "it": "italian",
    "pt": "portuguese",
    "ru": "russian",
}
"""Languages with a stemmer, and its name in snowballstemmer."""


@cache
def _stemmer_class(language: str) -> Callable[[], Callable[[str], str]]:
    # Imported at first use: each stemmer is a large module.
    name = _MODULES[language]
    module = import_module(f"snowballstemmer.{name}_stemmer")
    stemmer_class = getattr(module, f"{name.capitalize()}Stemmer")
    return lambda: stemmer_class().stemWord


@lru_cache(maxsize=8_192)
def stem(word: str, language: str) -> str:
    """The stem of a lower-case word, folded; the folded word for a language without a stemmer. A
    stemmer has state, so each call makes its own."""
    return fold(_stemmer_class(language)()(word)) if language in _MODULES else fold(word)
