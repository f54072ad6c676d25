"""Time that grows with the length of what callers send, and no faster.

Every function that touches callers' text is timed on hostile text of each class of character, and
on ordinary text of the same length. What counts is the ratio of the two, in CPU time of this
thread, the best of several tries: a loaded machine changes both alike. At these lengths a quadratic
function is a hundred times slower on its hostile text; a linear one is a few times slower, never
30. The full profile reads longer texts, on which the difference is larger.

A new function gets a row in `WHOLE` (texts of any length), `SENTENCES` (what is cut to sentences
before) or `STRUCTURES` (JSON).
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from time import thread_time
from typing import Any

import pytest

from memservice.domain import ids, times, tokens, values
from memservice.domain.answers.json_text import documents
from memservice.domain.answers.reasoning_tags import ReasoningFilter, without_reasoning
from memservice.domain.answers.refusals import is_refusal
from memservice.domain.answers.written_calls import written_calls
from memservice.domain.card_rules import folded
from memservice.domain.errors import InvalidInput
from memservice.domain.filters import limits
from memservice.domain.filters.ast import Contains, KeySubstring
from memservice.domain.filters.evaluate import matches
from memservice.domain.filters.jsontext import contains
from memservice.domain.json_schema import violation
from memservice.domain.sizes import MAX_QUERY
from memservice.domain.text import analysis, chunks, dates, names, particulars, shingles
from memservice.domain.text.folding import fold
from memservice.pipeline.card_lines import rewritten
from memservice.services import cards
from memservice.services.chat import response_format
from memservice.spi.reasoner import (
    AnswerRequest,
    ConsolidateRequest,
    DeriveRequest,
    Known,
    SummarizeRequest,
    Utterance,
)
from memservice.spi.toolbox import Evidence
from memservice_extractive import (
    certainty,
    duplicates,
    evidence,
    facts,
    language,
    lasting_requests,
    prose,
    relevance,
    replies,
    requests,
    sentences,
    subjects,
    tails,
    topics,
    updates,
    when,
    worth,
)
from memservice_extractive.evidence import Piece
from memservice_extractive.fill import Filler
from memservice_extractive.more_fact_forms import MORE_SLOT_FORMS
from memservice_extractive.reasoner import ExtractiveReasoner
from memservice_extractive.time_words import TIME_WORDS
from memservice_hashed.embedder import HashedEmbedder
from memservice_sqlite import functions

pytestmark = pytest.mark.slow

SIZE = 20_000
SIZES = (4_000, pytest.param(SIZE, marks=pytest.mark.heavy))
SENTENCE = 490
MOST = 40
"""Times that hostile input may take as long as ordinary input."""
MOST_OF_SHORT = 30
"""The same for texts shorter than `SIZE`, on which a quadratic function is less slow."""
SLOW_SPLITTERS = {"sentences in Arabic"}
"""Take 25 to 32 times as long for many short lines as for prose, whatever the length is."""
BY_LINE = {"own lines"}
"""Takes 55 times as long for lines of one letter as for one line, whatever the length is."""
QUOTING = {"what others said"}
"""Return at once for prose without quotation marks: their ordinary input has an opening one at
each word."""
FLOOR = 1e-3
"""Seconds that count as the least an ordinary input takes: shorter times are noise."""
TRIES = 4

ORDINARY = (
    "I live in Paris with my sister, and on 8 May we went to see the old café near Lake "
    "Geneva. It was great! Did you know that? "
)

CLASSES: dict[str, str] = {
    "marks of two classes": "\u0301\u0316",
    "marks of one class": "\u0301",
    "Hebrew points": "\u05b0\u05b4\u05c1",
    "half-width marks": "\uff9e\u0301",
    "Tibetan marks": "\u0f73\u0f71",
    "marks between selectors": "\u0301\ufe0f\u0316\ufe0f",
    "accented letters": "e\u0301\u0316",
    "exclamations": "!",
    "questions": "?!",
    "stops": ".",
    "stops and blanks": ". ",
    "ellipses": "…",
    "commas": ",",
    "commas and names": ", Anna",
    "colons": ":",
    "semicolons": "; ",
    "dashes": "-",
    "underscores": "_",
    "stars": "*",
    "quotes": '"',
    "low quotes": "„",
    "high quotes": "“",
    "guillemets": "«",
    "reverse guillemets": "»x",
    "corners": "「",
    "double corners": "『",
    "apostrophes": "'",
    "letters and apostrophes": "a'",
    "backticks": "`",
    "fences": "```\n",
    "parentheses": "(",
    "brackets": "[",
    "braces": "{",
    "tags": "<context",
    "whole tags": "<memory>",
    "closing tags": "</memory",
    "at signs": "@",
    "addresses": "a@b.",
    "glued addresses": "a@",
    "links": "http://",
    "digits": "1",
    "digits and dots": "1.",
    "numbers": "1 ",
    "dates": "8 May ",
    "months": "May ",
    "years": "2023年",
    "Arabic digits": "\u0661",
    "spaces": " ",
    "tabs": "\t",
    "line ends": "\n",
    "lines": "a\n",
    "no-break spaces": "\u00a0\u3000",
    "NUL": "\0",
    "emoji": "😀",
    "joined emoji": "👩\u200d👧\ufe0f",
    "Han": "猫",
    "Hiragana": "ね",
    "Katakana": "カ",
    "Hangul": "가",
    "Thai": "ก",
    "Arabic": "\u0639:",
    "letters": "a",
    "capitals": "A",
    "initials": "A. ",
    "words": "a ",
    "ands": "and ",
    "because": " because ",
    "names": "Anna ",
    "titles": "Mr. ",
    "letters and signs": "a!",
    "sharp s": "ß",
    "Greek": "ΐ",
    "ligatures": "\ufdfa is eighteen char",
}
FRAMES = (("I live in P", "x nice town"), ("```\n", ", x"))
"""What stands before and after: beginnings that patterns know, and ends at which they fail."""

NOW = datetime(2026, 5, 1, tzinfo=UTC)
NAMES = frozenset(("anna", "bob", "猫"))


def utterance(content: str) -> Utterance:
    return Utterance(1, "m1", "bob", content, NOW)


def conclusions_of(*contents: str) -> list[Known]:
    return [
        Known(f"k{number}", content, "explicit", NOW, 1, "bob", "bob")
        for number, content in enumerate(contents)
    ]


def judged(sentence: str) -> None:
    for each in ("en", "de", "zh", "ja", "fr"):
        worth.judge(sentence, each)


def read_as(each: str) -> Callable[[str], object]:
    forms = [
        pattern
        for _, pattern in (
            *facts._slot_patterns(each, ("bob", "the user")),
            *facts._card_patterns(each, ("bob", "the user")),
        )
    ]
    return lambda sentence: [pattern.search(sentence) for pattern in forms]


REASONER = ExtractiveReasoner()


def asking(text: str) -> AnswerRequest:
    evidence_of_text = [Evidence("message", "m1", text, NOW, author="bob")]
    return AnswerRequest(text[:MAX_QUERY], "bob", evidence_of_text)


WHOLE: dict[str, Callable[[str], object]] = {
    "fold": fold,
    "analyse": analysis.analyse,
    "words": analysis.words,
    "fingerprint": ids.fingerprint,
    "echo": lambda t: shingles.shingles_overlap(t, t),
    "sayings": lambda t: shingles.ShingleIndex([t]).repeating(t, 0.8),
    "dates named": dates.dates_named,
    "candidate names": names.candidate_name_tokens,
    "without names": lambda t: names.without_names(t, NAMES),
    "name tokens": lambda t: names.name_tokens("bob", t),
    "particulars": particulars.particulars,
    "chunks": lambda t: list(chunks.chunks(t, 5_000)),
    "tokens": tokens.count,
    "tokens cut": lambda t: tokens.cut(t, 1_000),
    "time": lambda t: quiet(times.parse_time, t),
    "JSON text": lambda t: values.loads(json.dumps([t]).encode()),
    "JSON": lambda t: quiet(values.loads, t.encode()),
    "check JSON": lambda t: values.check_json({"a": [t]}, ()),
    "metadata": lambda t: quiet(values.check_metadata, {"a": t * 4}, ()),
    "printable": values.printable,
    "card lines": lambda t: cards.tidy([t, t + "x"]),
    "card dedup": lambda t: rewritten(None, [t, f"IDENTITY: {t[:100]}"], False),
    "folded card line": folded,
    "stored substring": lambda t: matches(Row({"k": [t]}), KeySubstring("value", "k", t[1:])),
    "language": language.detect,
    "language words": language.words,
    "own lines": lambda t: prose.own_lines(t, "bob", ("anna",)),
    "sentences": lambda t: sentences.split(t, "en"),
    "sentences in Japanese": lambda t: sentences.split(t, "ja"),
    "sentences in Arabic": lambda t: sentences.split(t, "ar"),
    "quotations": worth.without_quotations,
    "content units": lambda t: (worth.content_units(t, "zh"), worth.content_units(t, "en")),
    "judge": judged,
    "fact": facts.read,
    **{
        f"denials in {each}": partial(certainty.denied, language=each)
        for each in ("en", "de", "es", "fr", "ru")
    },
    "reports": partial(certainty.without_report, language="en"),
    "what others said": partial(certainty.without_speech, language="en"),
    "meaning": duplicates.meaning,
    "merges": lambda t: list(duplicates.merges(conclusions_of(t, t + "x", t[:-1]))),
    "excerpt": lambda t: evidence.excerpt(t, {"paris"}),
    "derive": lambda t: REASONER.derive(DeriveRequest("bob", [utterance(t)])),
    "summarize": lambda t: REASONER.summarize(SummarizeRequest("short", [utterance(t)], t, 500)),
    "question before a reply": replies.last_question,
    "answer": lambda t: list(REASONER.answer(asking(t))),
    "consolidate": lambda t: REASONER.consolidate(
        ConsolidateRequest("bob", "bob", conclusions_of(t, t + "x"), [t])
    ),
    "embed": lambda t: HashedEmbedder().embed([t], "document"),
    "JSON of a model": lambda t: list(documents(t)),
    "JSON of a model, in an object": lambda t: list(documents('{"a": \'' + t)),
    "reasoning of a model": without_reasoning,
    "refusal of a model": is_refusal,
    "calls that a model wrote": lambda t: written_calls(t, ["search"]),
}
"""Texts of any length."""


def topics_in(language: str, text: str) -> object:
    """All topics of a text. Their patterns, which take a second, are compiled by the test."""
    among = frozenset(topics.cues(language).statements)
    return subjects.topics_told.__wrapped__(text, language=language, among=among)


def changes_in(language: str, text: str) -> object:
    return updates.changes(text, text, language)


SENTENCES: dict[str, Callable[[str], object]] = {
    "judge": judged,
    "fact": facts.read,
    "fact of Bob": lambda t: facts.read(t, ("bob", "I", "live")),
    "forms in English": read_as("en"),
    "forms in German": read_as("de"),
    "forms in Chinese": read_as("zh"),
    "forms in Japanese": read_as("ja"),
    **{f"forms in {each}": read_as(each) for each in MORE_SLOT_FORMS},
    **{
        f"times in {each}": partial(when.span, today=NOW.date(), language=each)
        for each in TIME_WORDS
    },
    **{f"topics in {each}": partial(topics_in, each) for each in topics.LANGUAGES},
    **{
        f"lasting requests in {each}": partial(lasting_requests.lasts, language=each)
        for each in topics.LANGUAGES
    },
    **{f"changes in {each}": partial(changes_in, each) for each in topics.LANGUAGES},
    "content of a question": lambda t: [relevance.Question(t, usual=each) for each in ("en", "zh")],
    "statement within": lambda t: [
        tails.statement_within(t + end, each, kind)
        for each in ("en", "zh")
        for end, kind in (("?", "question"), (": I run", "command"))
    ],
    "requests": lambda t: (
        requests.notes(t),
        requests.asks_again(t),
        requests.is_experience(t, "fr"),
    ),
    "score": lambda t: relevance.Question("Where does he live?").score(t, "en"),
    "core": lambda t: [worth.core(t, each) for each in ("en", "zh", "ja")],
    "question": lambda t: [worth.is_question(t, each) for each in ("en", "de", "zh", "ja")],
    "meaning": duplicates.meaning,
    "sentences": lambda t: sentences.split(t, "en"),
}
"""What only sentences come to, of at most 500 characters: there even a quadratic function is merely
slow, so more of them are read."""


class Row:
    def __init__(self, value: Any) -> None:
        self.value = value


def quiet(call: Callable[..., object], *args: Any) -> None:
    """Refusing is as good an end as any other."""
    with suppress(ValueError, InvalidInput):
        call(*args)


def timed(call: Callable[[], object]) -> float:
    for cached in (sentences._segmented_cached, analysis._terms):
        cached.cache_clear()
    before = thread_time()
    call()
    return thread_time() - before


def best(call: Callable[[], object], floor: float = FLOOR) -> float:
    return max(min(timed(call) for _ in range(TRIES)), floor)


def too_slow(call: Callable[[], object], ordinary: float, most: float = MOST) -> str:
    """The ratio, where it is larger than `most` at each try; "" else."""
    shortest = timed(call)
    for _ in range(TRIES - 1):
        if shortest <= most * ordinary:
            return ""
        if shortest > 100 * most * ordinary:
            break
        shortest = min(shortest, timed(call))
    return f"{shortest / ordinary:.0f} times" if shortest > most * ordinary else ""


def hostile(size: int) -> Iterator[tuple[str, str]]:
    for name, unit in CLASSES.items():
        for before, after in FRAMES:
            yield (
                f"{before}{name}{after}",
                (before + unit * (size // len(unit) + 1))[: size - len(after)] + after,
            )


def hostile_to(
    function: str, functions: Sequence[str], size: int, *, step: int
) -> list[tuple[str, str]]:
    """Every n-th hostile text, others for each function: functions share the classes that their
    patterns know. All are for the profile `full`."""
    return list(hostile(size))[functions.index(function) % step :: step]


def ordinary(size: int) -> str:
    return (ORDINARY * (size // len(ORDINARY) + 1))[:size]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", WHOLE)
def test_analysis_of_long_texts_is_linear(name: str, size: int) -> None:
    function, usual = WHOLE[name], ordinary(size)
    usual = usual.replace(" ", " “")[:size] if name in QUOTING else usual
    most = MOST if size == SIZE or name in SLOW_SPLITTERS else MOST_OF_SHORT
    most *= 2 if size == SIZE and name in BY_LINE else 1
    function(usual)  # loads what is loaded at first use
    took = best(lambda: function(usual))
    # short ones first: what takes minutes is found within seconds
    # Slow ones call functions that have rows of their own.
    step = 2 if took < 3 * FLOOR else 6 if took < 10 * FLOOR else 20
    some = partial(hostile_to, name, [*WHOLE], step=step)
    texts = hostile if size == SIZE else some
    for about, text in (*texts(size // 8), *texts(size)):
        assert not too_slow(lambda text=text: function(text), took, most), about  # type: ignore[misc]


@pytest.mark.parametrize("share", ["some", pytest.param("all", marks=pytest.mark.heavy)])
@pytest.mark.parametrize("name", SENTENCES)
def test_deriving_from_many_sentences_is_linear(name: str, share: str) -> None:
    function, usual = SENTENCES[name], ordinary(SENTENCE)
    took = best(lambda: function(usual), FLOOR / 3)
    some = partial(hostile_to, name, [*SENTENCES], step=2 if took <= FLOOR / 3 else 6)
    for about, text in hostile(SENTENCE) if share == "all" else some(SENTENCE):
        assert not too_slow(lambda text=text: function(text), took), about  # type: ignore[misc]


Structure = tuple[Callable[[Any], object], Any, Any]
"""A function, hostile input, and ordinary input of the same size."""


def lists(kind: Callable[[int], Any], count: int = 1_000, size: int = SIZE) -> tuple[Any, Any]:
    """(stored, wanted): all of the last items are looked for, and one."""
    stored = [kind(number) for number in range(size)]
    return (stored, stored[-count:]), (stored, stored[-1:])


def nested(number: int) -> dict[str, int]:
    return {"a": number}


def asked_of_sqlite(about: tuple[Any, Any]) -> object:
    with sqlite3.connect(":memory:") as connection:
        functions.install(connection)
        leaf = functions.encode_leaf(Contains("value", {"k": about[1]}))
        return connection.execute(
            f"SELECT {functions.MATCHES}(?, ?)", (json.dumps({"k": about[0]}), leaf)
        ).fetchone()


def form(choices: int, count: int = 10) -> dict[str, Any]:
    """Of the same length for any number of choices: what is missing is said in a description."""
    named = [f"choice number {number}" for number in range(2_000)]
    properties = {f"p{number}": {"$ref": "#/$defs/c"} for number in range(count)}
    pad = "x" * len(json.dumps(named[choices:]))
    return {
        "type": "object",
        "properties": properties,
        "$defs": {"c": {"enum": named[:choices], "description": pad}},
    }


def answered(choices: int) -> tuple[dict[str, Any], str]:
    schema = form(choices)
    return schema, json.dumps(dict.fromkeys(schema["properties"], schema["$defs"]["c"]["enum"][-1]))


def pieces() -> list[Piece]:
    return [
        Piece(ordinary(500) + f" choice number {number}", "card of bob")
        for number in range(1_900, 1_904)
    ]


def contained(about: tuple[Any, Any]) -> bool:
    return contains(*about)


def streamed(pieces: Sequence[str], is_open: bool = False) -> str:
    reader = ReasoningFilter(is_open=is_open)
    return "".join([*map(reader.take, pieces), reader.end()])


STRUCTURES: dict[str, Structure] = {
    "texts in a list": (contained, *lists(str)),
    "numbers in a list": (contained, *lists(int)),
    "fractions in a list": (contained, *lists(lambda number: number + 0.5)),
    "reference evaluator": (
        lambda about: matches(Row({"k": about[0]}), Contains("value", {"k": about[1]})),
        *lists(str),
    ),
    "SQLite": (asked_of_sqlite, *lists(str)),
    "objects in a list": (
        contained,
        lists(nested, limits.CONTAINED_IN_LISTS_MAX, SIZE // 4)[0],
        lists(nested, 4, SIZE // 4)[0],
    ),
    "many levels": (
        contained,
        ([[[str(n) for n in range(SIZE)]]], [[[str(n) for n in range(19_000, SIZE)]]]),
        lists(str)[1],
    ),
    "schema check": (response_format.check, form(1_999), form(2)),
    "schema filled": (
        lambda schema: Filler(schema, pieces(), "unknown").value(),
        form(1_999),
        form(2),
    ),
    "schema filled of nothing": (
        lambda schema: Filler(schema, [], "unknown").value(),
        form(1_999),
        form(2),
    ),
    "answer checked": (
        lambda about: response_format.check_answer(*about),
        answered(1_999),
        answered(2),
    ),
    "answer that misfits": (
        lambda schema: violation(schema, dict.fromkeys(schema["properties"], 7)),
        form(1_999),
        form(2),
    ),
}


@pytest.mark.parametrize("name", STRUCTURES)
def test_reading_nested_structures_is_linear(name: str) -> None:
    function, text, usual = STRUCTURES[name]
    took = best(lambda: function(usual))
    assert not too_slow(lambda: function(text), took)


BLOCKS = 100_000
"""Blocks of reasoning, or pieces of a stream."""

REASONING: dict[str, Callable[[], tuple[object, object]]] = {
    "blocks": lambda: (without_reasoning("<think></think>" * BLOCKS), ("", True)),
    "blocks in one piece": lambda: (streamed(["<think></think>" * BLOCKS]), ""),
    "blanks in pieces": lambda: (streamed(" " * BLOCKS), " " * BLOCKS),
    "blanks after reasoning": lambda: (streamed("<think></think>" + " " * BLOCKS + "x"), "x"),
    "open reasoning in pieces": lambda: (
        streamed(["reason "] * BLOCKS, is_open=True),
        "reason " * BLOCKS,
    ),
}
"""Hostile answers of a model: (result, expected result)."""


@pytest.mark.parametrize("name", REASONING)
def test_removing_reasoning_of_many_blocks_or_pieces_is_linear(name: str) -> None:
    before = thread_time()
    result, expected = REASONING[name]()
    assert result == expected
    assert thread_time() - before < 5  # about 0.1; a quadratic function takes minutes
