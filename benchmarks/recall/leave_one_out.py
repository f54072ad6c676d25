"""Would a variant that was chosen on the other sets also be the best on this one?

For each set in turn, the variant with the best mean over all other sets is chosen, and compared
with the first variant on the set that was left out, by paired differences. So a gain on one set
that is a loss on another is seen. The files are those of `python -m benchmarks.recall --save`; the
name of a variant stands before each. `--chart` draws every variant on every set.

    python -m benchmarks.recall.leave_one_out --chart /tmp/variants.svg \\
        default=/tmp/default.json share25=/tmp/share25.json share75=/tmp/share75.json
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

from memservice_bench.metrics import Figure, difference, figure

Values = Mapping[str, Sequence[float]]
"""Set → one value a question."""

LEFT, WIDTH, ROW, GAP = 210, 420, 18, 12
"""Pixels of a chart: its labels, 100 percent, a row, and the room between sets."""
COLOURS = ("#4878a8", "#b06030", "#5a9060", "#8060a0", "#a08030", "#607080")


@dataclass(frozen=True, slots=True)
class Row:
    """What the other sets choose, on the set that was left out."""

    left_out: str
    chosen: str
    change: Figure
    """The chosen variant to the first one."""
    best: str

    @property
    def is_loss(self) -> bool:
        return self.change.high < 0


def values_of(
    results: Mapping[str, Mapping[str, Sequence[float]]], surface: str, measure: str
) -> Values:
    """The values of one surface and one measure, over all categories. Raises `ValueError` if there
    are none."""
    ending = f" / {surface} / all"
    values = {
        row.removesuffix(ending): by_measure[measure]
        for row, by_measure in results.items()
        if row.endswith(ending) and measure in by_measure
    }
    if not values:
        raise ValueError(f"no values of {surface!r} by {measure!r}")
    return values


def rows(variants: Mapping[str, Values]) -> list[Row]:
    """One row for each set. The first variant is the one to compare with; of equally good ones, the
    first is chosen. Raises `ValueError` unless all have the same questions of at least two sets."""
    first = next(iter(variants.values()))
    if len(first) < 2:
        raise ValueError("at least two sets are needed")
    for name, values in variants.items():
        if {key: len(row) for key, row in values.items()} != {
            key: len(row) for key, row in first.items()
        }:
            raise ValueError(f"{name} has other questions than the first variant")
    return [_row(variants, first, left_out) for left_out in first]


def _row(variants: Mapping[str, Values], first: Values, left_out: str) -> Row:
    def mean(name: str, sets: Sequence[str]) -> float:
        # Each set counts the same, however many questions it has.
        return sum(sum(variants[name][key]) / len(variants[name][key]) for key in sets) / len(sets)

    others = [key for key in first if key != left_out]
    chosen = max(variants, key=lambda name: mean(name, others))
    best = max(variants, key=lambda name: mean(name, [left_out]))
    change = difference(first[left_out], variants[chosen][left_out])
    return Row(left_out, chosen, change, best)


def chart(variants: Mapping[str, Values], title: str) -> str:
    """SVG: a bar with its 95 % interval for each variant on each set."""
    parts, y = [f'<text x="{LEFT}" y="14">{escape(title)}</text>'], 28
    for key in next(iter(variants.values())):
        for number, (name, values) in enumerate(variants.items()):
            label = f"{key}: {name}" if number == 0 else name
            parts += _bar(label, figure(values[key]), COLOURS[number % len(COLOURS)], y)
            y += ROW
        y += GAP
    size = f'viewBox="0 0 {LEFT + WIDTH + 90} {y}" font-family="sans-serif" font-size="12"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size}>'
    ground = '<rect width="100%" height="100%" fill="#ffffff"/>'
    return "\n".join([head, ground, *parts, "</svg>", ""])


def _bar(label: str, of_set: Figure, colour: str, y: int) -> list[str]:
    def at(percent: float) -> float:
        return LEFT + WIDTH * percent / 100

    middle = y + ROW / 2 - 2
    return [
        f'<text x="{LEFT - 8}" y="{y + 11}" text-anchor="end">{escape(label)}</text>',
        f'<rect x="{LEFT}" y="{y}" width="{at(of_set.mean) - LEFT:.1f}" height="{ROW - 4}" '
        f'fill="{colour}"/>',
        f'<path d="M{at(of_set.low):.1f} {middle} H{at(of_set.high):.1f}" stroke="#202020"/>',
        f'<text x="{at(of_set.high) + 6:.1f}" y="{y + 11}">{of_set.mean:.1f}</text>',
    ]


def _named_file(argument: str) -> tuple[str, Path]:
    name, equals, path = argument.partition("=")
    if not (name and equals and path):
        raise argparse.ArgumentTypeError(f"{argument}: write NAME=FILE")
    return name, Path(path)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("variants", nargs="+", type=_named_file, metavar="NAME=FILE")
    parser.add_argument("--surface", default="workspace search")
    parser.add_argument("--measure", default="r@10")
    parser.add_argument("--chart", type=Path, help="write this SVG")
    options = parser.parse_args()
    variants = {
        name: values_of(json.loads(path.read_text("utf-8")), options.surface, options.measure)
        for name, path in options.variants
    }
    first = next(iter(variants))
    print(f"{options.surface}, {options.measure}\n")
    print(f"| set left out | chosen by the others | change to {first} | best on it |")
    print("| --- | --- | --- | --- |")
    for row in rows(variants):
        half = (row.change.high - row.change.low) / 2
        change = f"{row.change.mean:+.1f} ±{half:.1f}{' **loss**' if row.is_loss else ''}"
        print(f"| {row.left_out} | {row.chosen} | {change} | {row.best} |")
    if options.chart:
        options.chart.write_text(chart(variants, f"{options.surface}, {options.measure}"), "utf-8")


if __name__ == "__main__":
    main()
