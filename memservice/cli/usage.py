"""`memservice usage`: model usage, from the ledger in the store."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import Any

import click

from memservice.cli.operator import OPERATOR
from memservice.cli.options import State, json_lines
from memservice.cli.stores import opened
from memservice.cli.tables import show_table
from memservice.domain.durations import parse_duration
from memservice.domain.times import day_of
from memservice.services.usage import report as service
from memservice.services.usage.report import Line

FIELDS = {
    "day": "day",
    "workspace": "workspace_key",
    "task": "task",
    "model": "model",
    "provider": "provider",
}
NUMBERS = (
    "calls",
    "failed",
    "input_tokens",
    "output_tokens",
    "reasoning_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
)
HEADS = ("CALLS", "FAILED", "INPUT", "OUTPUT", "REASONING", "CACHE READ", "CACHE WRITE")


class _Since(click.ParamType[str]):
    """A day, or a duration before now."""

    name = "since"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        text = str(value)
        try:
            return date.fromisoformat(text).isoformat()
        except ValueError:
            pass
        try:
            return day_of(datetime.now(UTC) - parse_duration(text))
        except (ValueError, OverflowError):
            self.fail("write a day (2024-05-17) or a duration (7d or '2 weeks')", param, ctx)


@click.command()
@click.option(
    "--by",
    "by_fields",
    type=click.Choice(tuple(FIELDS)),
    multiple=True,
    help="Group by this. Repeat the option for several (default: day and model).",
)
@click.option("--workspace", "-w", help="Only calls for this workspace.")
@click.option(
    "--since",
    type=_Since(),
    default="30d",
    show_default=True,
    help="First day: a date such as 2024-05-17, or a duration such as 7d.",
)
@click.option(
    "--cost", "with_cost", is_flag=True, help="Also show the cost, by the prices in LLM_PRICES."
)
@json_lines
@click.pass_obj
def usage(
    state: State,
    by_fields: Sequence[str],
    workspace: str | None,
    since: str,
    with_cost: bool,
    as_json: bool,
) -> None:
    """Show the token usage of models and embedders. Days are in UTC."""
    if with_cost and not state.settings.llm.prices:
        raise click.UsageError(
            'no prices are set: LLM_PRICES={"gpt-5.4-mini": {"input": 0.25, "output": 2}}'
        )
    names = tuple(dict.fromkeys(by_fields)) or ("day", "model")
    with opened(state) as rt:
        rt.storage.check()
        fields, unpriced = [FIELDS[name] for name in names], list[str]()
        if with_cost:
            lines, unpriced = service.with_costs(
                rt, OPERATOR, fields, workspace_id=workspace, since=since
            )
        else:
            lines = service.overall(rt, OPERATOR, fields, workspace_id=workspace, since=since)
    if unpriced:
        click.echo(f"no price in LLM_PRICES: {', '.join(unpriced)}", err=True)
    if as_json:
        for line in lines:
            click.echo(json.dumps(_described(names, line), ensure_ascii=False))
        return
    rows = [
        [_shown(name, line) for name in names]
        + [str(getattr(line.total, number)) for number in NUMBERS]
        + ([_money(line.cost)] if with_cost else [])
        for line in lines
    ]
    sums = [sum(getattr(line.total, number) for line in lines) for number in NUMBERS]
    rows.append(["total", *([""] * (len(names) - 1)), *map(str, sums)])
    if with_cost:
        rows[-1].append(_money(sum(line.cost or 0.0 for line in lines)))
    heads = [*HEADS, *(["COST"] if with_cost else [])]
    show_table([*(name.upper() for name in names), *heads], rows)


def _money(amount: float | None) -> str:
    return f"{amount or 0.0:.4f}"


def _value(name: str, line: Line) -> str | None:
    value: str | None = line.workspace if name == "workspace" else getattr(line.total, name)
    return value


def _shown(name: str, line: Line) -> str:
    return _value(name, line) or "-"


def _described(names: Sequence[str], line: Line) -> dict[str, Any]:
    numbers = {number: getattr(line.total, number) for number in (*NUMBERS, "duration_ms")}
    cost = {} if line.cost is None else {"cost": round(line.cost, 6)}
    return {name: _value(name, line) for name in names} | numbers | cost
