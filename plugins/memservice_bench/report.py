"""Tables of a run and of the difference between two: by category, with intervals."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from memservice_bench.metrics import Figure
from memservice_bench.run import Result

ROUNDS = 1_000

Grade = Callable[[Result], float | None]
GRADES: dict[str, Grade] = {
    "shown first": lambda result: result.shown_first,
    "shown": lambda result: result.shown,
    "matched": lambda result: None if result.matched is None else float(result.matched),
    "abstained": lambda result: float(result.abstained),
    "correct": lambda result: None if result.correct is None else float(result.correct),
}
"""Shares of questions: evidence in the first prompt, in any prompt, gold answer found, "not known"
answered (right for the category `unknown` only), judged correct."""


def grouped_figure(values: Sequence[tuple[str, float]]) -> Figure:
    """The mean with a 95 % interval, in percent. The bootstrap draws whole conversations, since
    questions about one conversation fail together."""
    groups: dict[str, list[float]] = defaultdict(list)
    for conversation, value in values:
        groups[conversation].append(value)
    sums = np.array([sum(group) for group in groups.values()])
    sizes = np.array([len(group) for group in groups.values()])
    samples = np.random.default_rng(0).integers(0, len(groups), size=(ROUNDS, len(groups)))
    means = sums[samples].sum(axis=1) / sizes[samples].sum(axis=1)
    low, high = np.percentile(means, (2.5, 97.5))
    mean = float(sums.sum() / sizes.sum())
    return Figure(100 * mean, 100 * float(low), 100 * float(high), int(sizes.sum()))


def table(results: Iterable[Result]) -> str:
    """One line for each category, then one for all."""
    results = list(results)
    groups: dict[str, list[Result]] = defaultdict(list)
    for result in sorted(results, key=lambda result: result.category):
        groups[result.category].append(result)
    groups["all"] = results
    lines = [_line("category", "n", *GRADES, "calls", "seconds")]
    for category, members in groups.items():
        cells = [_cell([(r.conversation, grade(r)) for r in members]) for grade in GRADES.values()]
        calls = float(np.mean([r.calls for r in members])) if members else 0.0
        seconds = float(np.median([r.seconds for r in members])) if members else 0.0
        lines.append(_line(category, str(len(members)), *cells, f"{calls:.1f}", f"{seconds:.2f}"))
    return "\n".join(lines)


def facts_line(facts: Mapping[str, tuple[float, int]]) -> str:
    """A line with the share of gold facts that were derived."""
    figure = grouped_figure([(name, recall) for name, (recall, _) in facts.items()])
    conclusions = sum(count for _, count in facts.values())
    return f"facts derived: {figure} % of the gold facts, in {conclusions:,} conclusions"


def comparison(first: Iterable[Result], second: Iterable[Result]) -> str:
    """The difference of the second run to the first, on the questions that both have."""
    earlier = {result.identity: result for result in first}
    pairs = [(earlier[r.identity], r) for r in second if r.identity in earlier]
    lines = [_line("category", "n", *GRADES)]
    categories = sorted({result.category for _, result in pairs})
    for category in [*categories, "all"]:
        members = [pair for pair in pairs if category in ("all", pair[1].category)]
        cells = [
            _cell([(b.conversation, _change(grade(a), grade(b))) for a, b in members], signed=True)
            for grade in GRADES.values()
        ]
        lines.append(_line(category, str(len(members)), *cells))
    return "\n".join(lines)


def _change(before: float | None, after: float | None) -> float | None:
    return None if before is None or after is None else after - before


def _cell(values: Sequence[tuple[str, float | None]], *, signed: bool = False) -> str:
    graded = [(conversation, value) for conversation, value in values if value is not None]
    if not graded:
        return "–"
    figure = grouped_figure(graded)
    return f"{figure.mean:{'+' if signed else ''}.1f} ±{(figure.high - figure.low) / 2:.1f}"


def _line(name: str, *cells: str) -> str:
    return f"{name:<24}" + "".join(f"{cell:>14}" for cell in cells)
