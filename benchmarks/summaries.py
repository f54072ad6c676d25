"""CPU time of summaries without a model, of generated conversations, a batch of messages at a time
with the summary before it.

    python -m benchmarks.summaries [--count 2] [--batch 60] [--save FILE] [--against FILE]

`--save` writes the summaries, `--against` counts those that differ from saved ones.
"""

from __future__ import annotations

import argparse
import difflib
import json
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from benchmarks.recall.corpora import KINDS, generated
from memservice.spi.reasoner import SummarizeRequest, Utterance
from memservice_bench.corpus import Conversation
from memservice_extractive.summarize import summarize

MAX_TOKENS = {"short": 1_000, "long": 4_000}
"""As in the default settings."""
LONG = 800
"""Characters from which a message counts as long."""


def utterances(conversation: Conversation) -> list[Utterance]:
    return [
        Utterance(turn.key, str(turn.key), turn.speaker, turn.text, turn.at)
        for turn in conversation.turns
    ]


def summaries(messages: list[Utterance], kind: str, batch: int) -> list[str]:
    texts: list[str] = []
    for first in range(0, len(messages), batch):
        request = SummarizeRequest(
            kind,
            messages[first : first + batch],
            texts[-1] if texts else None,
            MAX_TOKENS[kind],
        )
        texts.append(summarize(request).content)
    return texts


def differences(texts: dict[str, list[str]], before: dict[str, list[str]]) -> None:
    for name, now in texts.items():
        lines = [
            line
            for old, new in zip(before[name], now, strict=True)
            for line in difflib.unified_diff(old.splitlines(), new.splitlines(), n=0, lineterm="")
            if line[0] in "+-" and line[:3] not in ("+++", "---")
        ]
        total = sum(len(text.splitlines()) for text in now)
        print(f"{name}: {len(lines)} lines added or removed, of {total}")
        print("\n".join(lines[:20]))


def messages_of(name: str, count: int) -> list[list[Utterance]]:
    """The messages of each conversation of a set."""
    talks = [utterances(each) for each in generated("tuning", name.split()[-1], count)]
    if name.startswith("long"):
        return [[message for message in talk if len(message.content) > LONG] for talk in talks]
    return talks


def measure(name: str, kind: str, count: int, batch: int) -> list[str]:
    talks = messages_of(name, count)
    summarize(SummarizeRequest(kind, talks[0][:5], None, 1_000))  # imports and patterns
    before = time.process_time()
    texts = [text for talk in talks for text in summaries(talk, kind, batch)]
    spent = time.process_time() - before
    number = sum(map(len, talks))
    print(
        f"{name}, {kind}: {1000 * spent / number:.2f} ms CPU a message, {number} messages, "
        f"{len(texts)} summaries",
        flush=True,
    )
    return texts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=2, help="conversations of each kind")
    parser.add_argument("--batch", type=int, default=60, help="messages of one summary")
    parser.add_argument("--save", type=Path)
    parser.add_argument("--against", type=Path)
    options = parser.parse_args()
    texts: dict[str, list[str]] = {}
    for name in (*KINDS, "long messages of assistant"):
        for kind in MAX_TOKENS:
            # Each in a new process, whose caches are empty.
            with ProcessPoolExecutor(1, get_context("spawn")) as pool:
                running = pool.submit(measure, name, kind, options.count, options.batch)
                texts[f"{name}, {kind}"] = running.result()
    if options.save:
        options.save.write_text(json.dumps(texts, ensure_ascii=False, indent=1))
    if options.against:
        differences(texts, json.loads(options.against.read_text()))


if __name__ == "__main__":
    main()
