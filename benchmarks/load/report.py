"""Tables and a chart of runs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from math import exp, log
from pathlib import Path

from benchmarks.load.measuring import FLOOR_NAME, Cell, Run

REFERENCE = Path(__file__).with_name("reference.json")


def reference_floors(scenario: str, connections: int) -> float | None:
    """What the reference server costs, as a multiple of its floor; None if it was not measured."""
    figures = json.loads(REFERENCE.read_text())
    cpu = figures["cpu"].get(str(connections), {}).get(scenario)
    return None if cpu is None else float(cpu) / float(figures["floor"])


def floors(run: Run, cell: Cell) -> float | None:
    """CPU of a request as a multiple of the floor of the same run."""
    bare = run.floor(cell.connections)
    return None if not bare or cell.cpu is None else cell.cpu / bare


def ratio(run: Run, cell: Cell) -> float | None:
    """How many times as much the reference costs, both in floors."""
    if run.in_process:
        return None  # the reference was measured over HTTP
    ours, theirs = floors(run, cell), reference_floors(cell.scenario, cell.connections)
    return None if not ours or theirs is None else theirs / ours


def geometric_mean(values: Sequence[float]) -> float:
    return exp(sum(map(log, values)) / len(values))


def table(run: Run) -> str:
    """The run as a Markdown table."""
    lines = [
        "| scenario | connections | requests/s | p50 ms | p95 ms | p99 ms | CPU ms: server | "
        "database | floors | reference / ours | errors |",
        "| --- | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: |",
    ]
    for cell in run.cells:
        figures = [
            f"{cell.per_second:.0f}",
            *(f"{value:.1f}" for value in (cell.p50, cell.p95, cell.p99)),
            _figure(cell.server_cpu, 2),
            _figure(cell.database_cpu, 2),
            _figure(floors(run, cell), 1),
            _figure(ratio(run, cell), 1),
            str(sum(cell.errors.values())),
        ]
        lines.append(f"| {cell.scenario} | {cell.connections} | {' | '.join(figures)} |")
    for connections in sorted({cell.connections for cell in run.cells}):
        ratios = [
            cell_ratio
            for cell in run.cells
            if cell.connections == connections and (cell_ratio := ratio(run, cell)) is not None
        ]
        if ratios:
            lines.append(
                f"\n{connections} connections: geometric mean of the ratios "
                f"{geometric_mean(ratios):.1f}, lowest {min(ratios):.1f}"
            )
    return "\n".join([*lines, *tails(run)])


def tails(run: Run, few: int = 8, many: int = 32) -> list[str]:
    """How p99 grows from `few` connections to `many`: a line for each scenario that was measured
    with both. With four times the connections on the same processors, 4 is what waiting costs."""
    lines = []
    for cell in run.cells:
        before = run.cell(cell.scenario, few)
        if cell.connections == many and before is not None and before.p99:
            lines.append(
                f"{cell.scenario}: p99 {before.p99:.1f} ms at {few} connections, {cell.p99:.1f} ms "
                f"at {many}: {cell.p99 / before.p99:.1f} times"
            )
    return ["", *lines] if lines else []


def comparison(before: Run, after: Run) -> str:
    """Two runs side by side, in CPU and in floors, as a Markdown table."""
    lines = [
        "| scenario | connections | CPU ms | CPU ms after | floors | floors after | gain |",
        "| --- | --: | --: | --: | --: | --: | --: |",
    ]
    for cell in before.cells:
        other = after.cell(cell.scenario, cell.connections)
        if other is None:
            continue
        first, second = floors(before, cell), floors(after, other)
        if cell.scenario == FLOOR_NAME or not first or not second:
            first = second = None
        gain = None if first is None or second is None else first / second
        figures = [
            _figure(cell.cpu, 2),
            _figure(other.cpu, 2),
            _figure(first, 1),
            _figure(second, 1),
            _figure(gain, 2),
        ]
        lines.append(f"| {cell.scenario} | {cell.connections} | {' | '.join(figures)} |")
    return "\n".join(lines)


def chart(run: Run, connections: int) -> str:
    """Bars of the scenarios in floors, on a logarithmic scale, as SVG; a mark for the reference."""
    rows = [
        (cell.scenario, value, reference_floors(cell.scenario, connections))
        for cell in run.cells
        if cell.connections == connections and (value := floors(run, cell)) is not None
    ]
    if not rows:
        raise ValueError(f"the run has no cells with {connections} connections and a floor")
    left, width, height = 180, 620, 20
    top = max(max(ours, theirs or 0.0) for _, ours, theirs in rows)

    def at(value: float) -> float:
        return left + width * log(max(value, 0.5) / 0.5) / log(max(top, 1.0) / 0.5)

    total = height * (len(rows) + 2)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {left + width + 60} {total}" '
        'font-family="sans-serif" font-size="12">',
        f'<text x="{left}" y="14">CPU per request in floors, {connections} connections; '
        "the line is the reference</text>",
    ]
    for number, (name, ours, theirs) in enumerate(rows, 1):
        y = height * number + 4
        parts.append(
            f'<text x="{left - 8}" y="{y + 12}" text-anchor="end">{escape(name)}</text>'
            f'<rect x="{left}" y="{y}" width="{at(ours) - left:.1f}" height="{height - 6}" '
            'fill="#4878a8"/>'
            f'<text x="{at(ours) + 4:.1f}" y="{y + 12}">{ours:.1f}</text>'
        )
        if theirs is not None:
            parts.append(
                f'<rect x="{at(theirs):.1f}" y="{y - 2}" width="2" height="{height - 2}" '
                'fill="#b03030"/>'
            )
    return "\n".join([*parts, "</svg>", ""])


def _figure(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}f}"
