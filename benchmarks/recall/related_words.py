"""How many words that are asked for in another form find the right message first, with other
weights and limits of related words.

The table is that of `tests/api/test_word_forms.py`, by itself and beside 60 long answers. `--long`
also stores a talk with an assistant for each limit on short beginnings, and tells the size of the
file. Stores are made in a directory that must not exist yet.

    PYTHONPATH=tests python -m benchmarks.recall.related_words /tmp/related
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from benchmarks.recall.stores import ME, open_store, store
from memservice.domain.text import relatives
from memservice.runtime import Runtime
from memservice.services import messages
from memservice.services.messages import Draft
from memservice.services.retrieval import search, text_matches
from memservice.services.retrieval.search import SearchOptions
from memservice_bench.assistant import ASSISTANT, assistant_conversation
from support.word_forms import LANGUAGES, table

SEED = 3
ANSWERS = 60
NO_LIMIT = 1_000_000
WEIGHTS = ((0.4, 0.2), (0.3, 0.2), (0.4, 0.1), (0.8, 0.4), (0.2, 0.2), (0.4, 0.4), (0.4, 0.0))
"""Of long and of short beginnings."""


def fill(runtime: Runtime) -> None:
    """Two workspaces of each language: with its messages alone, and with long answers as well."""
    turns = assistant_conversation(SEED, 0).turns
    answers = [turn.text for turn in turns if turn.speaker == ASSISTANT][:ANSWERS]
    for language in LANGUAGES:
        for workspace, others in ((language, []), (f"{language}-long", answers)):
            texts = [*table(language).messages, *others]
            for start in range(0, len(texts), 50):
                drafts = [Draft(text, "alice") for text in texts[start : start + 50]]
                messages.create(runtime, ME, workspace, "s", drafts)


def show(runtime: Runtime, label: str) -> None:
    right = {"": 0, "-long": 0}
    began = time.process_time()
    for kind in right:
        for language in LANGUAGES:
            for query, expected in table(language).cases:
                options = SearchOptions(query, 10)
                hits = search.search(runtime, ME, language + kind, options)
                right[kind] += bool(hits) and hits[0].content == expected
    spent = (
        1000 * (time.process_time() - began) / sum(2 * len(table(each).cases) for each in LANGUAGES)
    )
    alone, beside = right.values()
    print(f"{label:34} alone {alone}, beside long answers {beside}, {spent:.1f} ms CPU", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("directory", type=Path)
    parser.add_argument("--long", action="store_true", help="the size of stores as well")
    parsed = parser.parse_args()
    parsed.directory.mkdir()
    runtime = open_store(f"sqlite:///{parsed.directory}/words.db", {}, derive=False)
    fill(runtime)
    print(sum(len(table(each).cases) for each in LANGUAGES), "words")
    for long_weight, short_weight in WEIGHTS:
        relatives.LONG_WEIGHT, relatives.SHORT_WEIGHT = long_weight, short_weight
        relatives._relatives.cache_clear()
        show(runtime, f"weights {long_weight} and {short_weight}")
    relatives.LONG_WEIGHT, relatives.SHORT_WEIGHT = WEIGHTS[0]
    relatives._relatives.cache_clear()
    for limit in (0, 5, text_matches.MAX_NEAR, 800):
        # pyrefly: ignore[bad-assignment]
        shipped, text_matches.MAX_NEAR = text_matches.MAX_NEAR, limit
        show(runtime, f"at most {limit} by beginnings")
        text_matches.MAX_NEAR = shipped
    for limit in (0, relatives.MAX_SHORT_WORDS, NO_LIMIT):
        relatives.MAX_SHORT_WORDS = limit  # pyrefly: ignore[bad-assignment]
        path = parsed.directory / f"words-{limit}.db"
        again = open_store(f"sqlite:///{path}", {}, derive=False)
        fill(again)
        show(again, f"short beginnings up to {limit} words")
        if parsed.long:
            path = parsed.directory / f"long-{limit}.db"
            large = open_store(f"sqlite:///{path}", {}, derive=False)
            store(large, "w", assistant_conversation(SEED, 0, idle=700))
            large.close()
            print(f"{'':34} file of a long talk: {path.stat().st_size // 1024} KB", flush=True)


if __name__ == "__main__":
    main()
