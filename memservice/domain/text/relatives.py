"""What words have in common with their inflected and derived forms.

Two kinds of terms stand in the index beside those of `analysis.analyse`, which they do not change:

* the *stem* of a word in the language of its text: Katze, Katzen. English stems are terms of the
  analysis already;
* the *beginnings* of a word, which derived words share: allergy, allergic. They say little, so a
  search asks for them only where it finds little else.

The script decides Russian, Greek, Hindi and Arabic; function words tell the languages in Latin
letters apart. Scripts without spaces have neither: their terms are pairs of characters.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from msgspec import Struct

from memservice.domain.text.analysis import analyse
from memservice.domain.text.folding import MAX_TERM, UNSPACED, fold
from memservice.domain.text.function_words import FUNCTION_WORDS, PARTICLES, STOP_WORDS_OF
from memservice.domain.text.normal_forms import normalize
from memservice.domain.text.scripts import KANA_LETTERS
from memservice.domain.text.stems import stem
from memservice.domain.text.word_caches import cached_words

RELATIVES = "relatives-1"
"""The name of these terms. It changes whenever those of any text change. A store whose texts were
indexed under another name is indexed again in the background."""

STEM, BEGINNING = "·", "°"
"""First characters of the terms, which no term of the analysis contains."""
SHORT, LONG = 3, 5
"""Letters of the two beginnings of a word."""
LONG_WEIGHT, SHORT_WEIGHT = 0.4, 0.2
"""How much a text with a word of the same beginning counts, where the word itself, in any form,
counts 1. Of 200 words in ten languages, asked for in another form, 194 find the right message
first: with these weights, with 0.3 and 0.2, 0.4 and 0.1, or 0.8 and 0.4. Without the short
beginnings 176 do, with equal weights 189 to 192 (benchmarks/recall/related_words.py)."""
MAX_SAMPLE = 200
"""Words that decide the language of a text."""
MAX_SHORT_WORDS = 60
"""Words of a text beyond which it is found by the long beginnings only. Without the limit, a store
of 1,600 messages, half of them long, takes 18 % more space, and none of the 200 words finds more;
with 0, 176 find the right message first instead of 194 (benchmarks/recall/related_words.py)."""

_WORD = re.compile(r"(?:[^\W\d_]|[\u0900-\u0dff])+")
"""A word without apostrophes. The vowels of Indic scripts are marks."""
_ARABIC_MARKS = re.compile("[\u0610-\u061a\u0640\u064b-\u0653\u0670]")
_SCRIPTS = (
    ("ru", re.compile("[\u0400-\u04ff]")),
    ("ar", re.compile("[\u0600-\u06ff]")),
    ("el", re.compile("[\u0370-\u03ff]")),
    ("hi", re.compile("[\u0900-\u097f]")),
)
_KANA = re.compile(f"[{KANA_LETTERS}]")

_LANGUAGES_OF: dict[str, tuple[str, ...]] = {}
for _language, _own_words in FUNCTION_WORDS.items():
    for _function_word in _own_words | STOP_WORDS_OF[_language] | frozenset(map(fold, _own_words)):
        _LANGUAGES_OF[_function_word] = (*_LANGUAGES_OF.get(_function_word, ()), _language)
_LATIN = tuple(sorted(FUNCTION_WORDS.keys() - {"en"}))
"""Languages in Latin letters that the analysis has no stems of."""


def _words(text: str) -> list[str]:
    """Lower-case words of scripts with spaces, in order, with accents."""
    if text.isascii():
        return _WORD.findall(text.lower())
    text = normalize("NFC", normalize("NFKC", text).casefold())
    return _WORD.findall(UNSPACED.sub(" ", _ARABIC_MARKS.sub("", text)))


def _languages(words: Sequence[str]) -> tuple[str, ...]:
    """The languages in Latin letters with the most function words in a text, usually one; none if
    no word tells."""
    counts = Counter(
        language
        for word in words[:MAX_SAMPLE]
        # With its accents first: the Italian è is not the Portuguese é.
        for language in _LANGUAGES_OF.get(word, ()) or _LANGUAGES_OF.get(fold(word), ())
    )
    most = max(counts.values(), default=0)
    return tuple(sorted(language for language in counts if counts[language] == most))


def languages_of(text: str) -> tuple[str, ...]:
    """The likely languages of a text: those that its scripts tell, and of those in Latin letters
    the ones with the most function words."""
    words = _words(text)
    scripts = dict.fromkeys(filter(None, map(_language_by_script, words)))
    return (*scripts, *_languages(words))


def _language_by_script(word: str) -> str | None:
    if word.isascii():
        return None
    return next((name for name, script in _SCRIPTS if script.match(word)), None)


def _languages_of(word: str, languages: tuple[str, ...]) -> tuple[str, ...]:
    by_script = _language_by_script(word)
    return (by_script,) if by_script is not None else languages


def _is_stop_word(word: str, languages: tuple[str, ...]) -> bool:
    """Whether a folded word carries no information in any of these languages."""
    return bool(languages) and all(word in STOP_WORDS_OF.get(each, ()) for each in languages)


def _stems(word: str, languages: Iterable[str]) -> list[str]:
    stems = [stem(word, each) for each in languages if each != "en"]
    return [f"{STEM}{each}"[:MAX_TERM] for each in dict.fromkeys(stems)]


_PARTICIPLE = re.compile(
    "(an|auf|aus|ab|bei|ein|her|hin|mit|nach|vor|weg|zu|zusammen|)ge(.{3,}(?:t|en))"
)
"""A German participle: gekauft, angemeldet."""
_ARTICLE = re.compile("(?:وال|بال|كال|فال|لل|ال|س(?=[نيت]))(?=..)")
"""The article with what is written before it, or the mark of the future."""
_ENDING = re.compile("(?<=..)(?:تين|تان|ات|ون|ين|ان|ية|ها|هم|نا|تي|وا|ة|ه|ي|ت|ا)$")
_WEAK_LETTER = re.compile("[اويىءئؤ]")


def _arabic_root(word: str) -> str:
    """Roughly the root of a folded Arabic word: the last three letters without article, ending,
    weak letters and one letter of inflection."""
    article = _ARTICLE.match(word)
    bare = _ENDING.sub("", word[article.end() :] if article else word)
    root = _WEAK_LETTER.sub("", bare)
    if len(root) < 2:
        return bare
    if root[0] in "متين" and (len(root) > 3 or (len(root) == 3 and len(bare) > 3)):
        root = root[1:]
    return root[-3:]


def _beginnings(word: str, languages: tuple[str, ...]) -> list[tuple[str, float]]:
    """The beginnings of a folded word of at least three letters, with their weights."""
    if _language_by_script(word) == "ar":
        return [(BEGINNING + _arabic_root(word), LONG_WEIGHT)]
    forms = [word]
    if (not languages or "de" in languages) and (parts := _PARTICIPLE.fullmatch(word)):
        forms.append(parts[1] + parts[2])
    beginnings: dict[str, float] = {}
    for form in forms:
        # Stressed vowels of Spanish verbs: duerme, dormir.
        form = form.replace("ue", "o").replace("ie", "e")
        if len(form) >= SHORT:
            beginnings[BEGINNING + form[:SHORT]] = SHORT_WEIGHT
        if len(form) > SHORT:
            beginnings[BEGINNING + form[:LONG]] = LONG_WEIGHT
    return list(beginnings.items())


class _Relatives(NamedTuple):
    stems: tuple[str, ...]
    beginnings: tuple[tuple[str, float], ...]


_NONE = _Relatives((), ())


@cached_words
def _relatives(word: str, languages: tuple[str, ...]) -> _Relatives:
    """The terms of one word; none for a stop word."""
    folded = fold(word)
    own = _languages_of(word, languages)
    if _is_stop_word(folded, own) or folded in STOP_WORDS_OF["en"]:
        return _NONE
    return _Relatives(tuple(_stems(word, own)), tuple(_beginnings(folded, own)))


class IndexTerms(NamedTuple):
    """What the index holds of a text."""

    terms: list[str]
    """Those of `analyse`."""
    related: list[str]
    """Stems, and beginnings if they were asked for; each once."""


def index_terms(text: str, beginnings: bool) -> IndexTerms:
    """Analyse a text for the index. `beginnings`: whether its words are to be found by them."""
    words = _words(text)
    languages = _languages(words)
    related: dict[str, None] = {}
    distinct = dict.fromkeys(words)
    least = LONG_WEIGHT if len(distinct) > MAX_SHORT_WORDS else SHORT_WEIGHT
    for word in distinct:
        relatives = _relatives(word, languages)
        related.update(dict.fromkeys(relatives.stems))
        if beginnings:
            related |= {term: None for term, weight in relatives.beginnings if weight >= least}
    return IndexTerms(analyse(text), list(related))


class QueryWord(Struct, frozen=True):
    """One term of a query, and the terms of its relatives."""

    term: str
    stems: tuple[str, ...] = ()
    beginnings: tuple[tuple[str, float], ...] = ()
    """With their weights."""


def query_words(text: str) -> list[QueryWord]:
    """The distinct words of a query in order, without stop words of its language; with them if it
    has no others.

    A short query tells its language less often than a text, so one without function words is asked
    for in each.
    """
    words = list(dict.fromkeys(_words(text)))
    languages = _languages(words)
    particles = PARTICLES["ja" if _KANA.search(text) else "zh"]
    relatives: dict[str, _Relatives] = {}
    stop_terms: set[str] = set()
    for word in words:
        terms = analyse(fold(word))
        if _is_stop_word(fold(word), _languages_of(word, languages)):
            stop_terms.update(terms)
        elif len(terms) == 1:
            relatives.setdefault(terms[0], _relatives(word, languages or _LATIN))
    terms = list(dict.fromkeys(analyse(text)))
    spoken = [term for term in terms if term not in stop_terms and not particles.issuperset(term)]
    return [QueryWord(term, *relatives.get(term, _NONE)) for term in spoken or terms]
