"""How well a real store finds the evidence:
`python -m benchmarks.recall --db sqlite:////tmp/recall.db`.

The conversations are stored through the services, one workspace each, and every question is asked
as a workspace search. Reports each measure with its interval, over all questions and by category.
`--compare` runs a second store and reports the paired differences.
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from memservice.compose import open_runtime
from memservice.domain import tokens
from memservice.runtime import Runtime
from memservice.services import messages, peers
from memservice.services.auth.principal import Principal
from memservice.services.messages import Draft
from memservice.services.retrieval import search
from memservice.services.retrieval.search import SearchOptions
from memservice.settings import load_settings
from memservice_bench.builtin import conversations
from memservice_bench.corpus import Conversation
from memservice_bench.metrics import MEASURES, difference, figure
from memservice_bench.public_sets import load_beam, load_locomo

ME = Principal(admin=True)
DEPTH = 100
"""Results asked for: enough to fill every context that is measured."""
BATCH = 100

Values = dict[str, dict[str, list[float]]]
"""Category → measure → one value a question."""


def open_store(uri: str) -> Runtime:
    settings = load_settings(
        environ={"DB_CONNECTION_URI": uri, "DERIVER_ENABLED": "false", "SUMMARY_ENABLED": "false"},
        cwd=Path("/"),
    )
    runtime = open_runtime(settings)
    runtime.storage.migrate()
    return runtime


def store(runtime: Runtime, workspace: str, talk: Conversation) -> dict[str, int]:
    """Store a conversation; returns the turn's key by message uid."""
    ids = {
        speaker: f"peer-{number}" if not speaker.isascii() else speaker.replace(" ", "_")
        for number, speaker in enumerate(talk.speakers)
    }
    for speaker, slug in ids.items():
        peers.get_or_create(runtime, ME, workspace, slug, {"name": speaker}, None)
    keys: dict[str, int] = {}
    for session, turns in groupby(talk.turns, key=lambda turn: turn.session):
        rest = list(turns)
        while rest:
            batch, rest = rest[:BATCH], rest[BATCH:]
            drafts = [Draft(turn.text, ids[turn.speaker], created_at=turn.at) for turn in batch]
            stored = messages.create(runtime, ME, workspace, f"session-{session}", drafts)
            keys |= {message.uid: turn.key for message, turn in zip(stored, batch, strict=True)}
    return keys


def measure(runtime: Runtime, corpus: Sequence[Conversation]) -> tuple[Values, float]:
    """Values per question, and milliseconds of CPU a search."""
    values: Values = defaultdict(lambda: defaultdict(list))
    spent, asked = 0.0, 0
    for number, talk in enumerate(corpus):
        workspace = f"w{number}"
        keys = store(runtime, workspace, talk)
        sizes = {turn.key: tokens.count(f"{turn.speaker}: {turn.text}") for turn in talk.turns}
        for question in talk.questions:
            began = time.process_time()
            found = search.search(runtime, ME, workspace, SearchOptions(question.text, DEPTH))
            spent, asked = spent + time.process_time() - began, asked + 1
            ranking = [keys[message.uid] for message in found]
            for name, value in MEASURES.items():
                for category in ("all", question.category):
                    values[category][name].append(value(ranking, question.evidence, sizes))
    return values, 1000 * spent / max(asked, 1)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--db", default="memory://", help="the store, which must be empty")
    parser.add_argument(
        "--compare", metavar="DB", help="a second, empty store: report how much better it is"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=6, help="generated conversations")
    parser.add_argument("--locomo", type=Path)
    parser.add_argument("--beam", type=Path)
    given = parser.parse_args()
    corpus = (
        load_locomo(given.locomo)
        if given.locomo
        else load_beam(given.beam)
        if given.beam
        else conversations(given.seed, given.count)
    )
    first, cost = measure(open_store(given.db), corpus)
    print(
        f"{given.db}: {sum(len(talk.turns) for talk in corpus)} messages, {cost:.1f} ms "
        "CPU a search"
    )
    for category, by_measure in sorted(first.items()):
        print(
            f"{category:14}",
            "  ".join(f"{name} {figure(found)}" for name, found in by_measure.items()),
        )
    if given.compare:
        second, cost = measure(open_store(given.compare), corpus)
        print(f"{given.compare}: {cost:.1f} ms CPU a search; differences:")
        for category, by_measure in sorted(second.items()):
            print(
                f"{category:14}",
                "  ".join(
                    f"{name} {difference(first[category][name], found)}"
                    for name, found in by_measure.items()
                ),
            )


if __name__ == "__main__":
    main()
