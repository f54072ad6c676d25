"""Word stems by language, so that inflected forms of a word are equal."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module

from memservice.domain.text.folding import fold
from memservice.domain.text.word_caches import cached_words

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
def stemmer_of(language: str) -> Callable[[], Callable[[str], str]]:
    """A factory of stemmers of a language: a stemmer has state, so each call needs its own.

    Imported at first use, because each stemmer is a large module. The package's own choice would
    be a compiled stemmer where one is installed, whose stems may differ between releases: an index
    needs the same stems in every process.
    """
    name = _MODULES[language]
    module = import_module(f"snowballstemmer.{name}_stemmer")
    stemmer_class = getattr(module, f"{name.capitalize()}Stemmer")
    return lambda: stemmer_class().stemWord


@cached_words
def stem(word: str, language: str) -> str:
    """The stem of a lower-case word, folded; the folded word for a language without a stemmer."""
    return fold(stemmer_of(language)()(word)) if language in _MODULES else fold(word)
