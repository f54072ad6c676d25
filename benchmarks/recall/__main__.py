"""How well a real store finds the evidence, by kind of conversation.

The conversations are stored through the services, one workspace each, and every question is asked.
Reports each measure with its interval. Two ways to compare, both by paired differences: `--compare`
runs a second store, `--against` reads what an earlier run has saved.

    python -m benchmarks.recall --db sqlite:////tmp/recall.db --save /tmp/before.json
    python -m benchmarks.recall --db sqlite:////tmp/other.db --against /tmp/before.json
    python -m benchmarks.recall --compare postgresql+psycopg://…
"""

from __future__ import annotations

import argparse
import json
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.recall.corpora import HOPS, KINDS, LOADERS, THIRD, corpora
from benchmarks.recall.stores import conclude, open_store, store, work
from benchmarks.recall.surfaces import DERIVED, SURFACES, Values
from memservice.runtime import Runtime
from memservice_bench.corpus import Conversation
from memservice_bench.metrics import MEASURES, difference, figure

SHORT = ("r@10", "MRR", "cov@2k", "whole", "tokens")
"""Measures that are printed without `--all`."""

Results = dict[str, dict[str, list[float]]]
"""Set, surface and category → measure → one value a question."""


def measure(
    runtime: Runtime,
    sets: Mapping[str, Sequence[Conversation]],
    surfaces: Sequence[str],
    with_inferences: bool = False,
) -> tuple[Results, dict[str, float]]:
    """The values, and milliseconds of CPU a call by set and surface. `with_inferences`: with
    conclusions that a model may draw, not derived ones."""
    stored = {
        name: [
            store(runtime, f"{name.replace(', ', '-').replace(' ', '-')}-{number}", talk)
            for number, talk in enumerate(corpus)
        ]
        for name, corpus in sets.items()
    }
    for one in (each for several in stored.values() if with_inferences for each in several):
        conclude(runtime, one)
    work(runtime)
    results: Results = defaultdict(lambda: defaultdict(list))
    cost: dict[str, float] = {}
    for name, conversations in stored.items():
        for surface in surfaces:
            spent, queries = 0.0, 0
            for one in conversations:
                for question in one.talk.questions:
                    began = time.process_time()
                    values = SURFACES[surface](runtime, one, question)
                    spent, queries = spent + time.process_time() - began, queries + 1
                    note(results, f"{name} / {surface}", question.category, values)
            cost[f"{name} / {surface}"] = 1000 * spent / max(queries, 1)
    return results, cost


def note(results: Results, row: str, category: str, values: Values) -> None:
    for name, value in values.items():
        for label in ("all", category):
            results[f"{row} / {label}"][name].append(value)


def print_table(results: Results, cost: Mapping[str, float], columns: Sequence[str]) -> None:
    for row, by_measure in results.items():
        shown = "  ".join(
            f"{name} {figure(values)}" for name, values in by_measure.items() if name in columns
        )
        if shown:
            name, _, category = row.rpartition(" / ")
            spent = f"  {cost[name]:.1f} ms CPU" if category == "all" and name in cost else ""
            print(f"{row:55}", shown + spent)


def print_difference(first: Results, second: Results, columns: Sequence[str]) -> None:
    print("Differences:")
    for row, by_measure in second.items():
        if row in first:
            shown = "  ".join(
                f"{name} {difference(first[row][name], values)}"
                for name, values in by_measure.items()
                if name in columns and len(first[row].get(name, ())) == len(values)
            )
            print(f"{row:55}", shown)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--db", required=True, help="the store; conversations in it are not stored again"
    )
    parser.add_argument("--compare", metavar="DB", help="a second store")
    parser.add_argument("--save", type=Path, help="keep the values in this JSON file")
    parser.add_argument("--against", type=Path, help="a file of an earlier run")
    parser.add_argument("--split", choices=("tuning", "held-back", THIRD, "both"), default="both")
    parser.add_argument("--kind", choices=(*KINDS, *HOPS, "both", "hops"), default="both")
    parser.add_argument("--count", type=int, default=6, help="conversations of each set")
    parser.add_argument("--idle", type=int, help="exchanges without a fact in each conversation")
    parser.add_argument(
        "--surface", action="append", choices=tuple(SURFACES), help="default: the searches"
    )
    parser.add_argument("--categories", action="store_true", help="by category of question as well")
    parser.add_argument(
        "--inferences",
        action="store_true",
        help="store conclusions that a model may draw, instead of deriving them without a model",
    )
    parser.add_argument("--all", action="store_true", help="every measure")
    parser.add_argument(
        "--option", action="append", default=[], metavar="NAME=VALUE", help="a setting"
    )
    for name in LOADERS:
        parser.add_argument(f"--{name}", type=Path, help="the path of this public set")
    return parser.parse_args()


def only(results: Results, categories: bool) -> Results:
    return results if categories else {k: v for k, v in results.items() if k.endswith(" / all")}


def describe(sets: Mapping[str, Sequence[Conversation]]) -> None:
    for name, corpus in sets.items():
        messages = sum(len(talk.turns) for talk in corpus)
        questions = sum(len(talk.questions) for talk in corpus)
        print(f"{name}: {len(corpus)} conversations, {messages} messages, {questions} questions")


def main() -> None:
    parsed = arguments()
    splits = ["tuning", "held-back"] if parsed.split == "both" else [parsed.split]
    kinds = {"both": list(KINDS), "hops": list(HOPS)}.get(parsed.kind, [parsed.kind])
    files = {name: getattr(parsed, name) for name in LOADERS}
    sets = corpora(splits, kinds, parsed.count, parsed.idle, files)
    surfaces = parsed.surface or ["workspace search", "peer search"]
    options = dict(option.split("=", 1) for option in parsed.option)
    columns = (*MEASURES, "whole", "tokens") if parsed.all else SHORT
    derive = not parsed.inferences and not DERIVED.isdisjoint(surfaces)
    describe(sets)
    first, cost = measure(open_store(parsed.db, options, derive), sets, surfaces, parsed.inferences)
    print_table(only(first, parsed.categories), cost, columns)
    if parsed.save:
        parsed.save.write_text(json.dumps(first), "utf-8")
    if parsed.against:
        earlier = json.loads(parsed.against.read_text("utf-8"))
        print_difference(earlier, only(first, parsed.categories), columns)
    if parsed.compare:
        second, cost = measure(
            open_store(parsed.compare, options, derive), sets, surfaces, parsed.inferences
        )
        print_table(only(second, parsed.categories), cost, columns)
        print_difference(first, only(second, parsed.categories), columns)


if __name__ == "__main__":
    main()
