"""`memservice usage`: what models cost, from the ledger in the store."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import Any

import click

from memservice.cli.operator import OPERATOR
from memservice.cli.options import State
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
    "cache_read_tokens",
    "cache_write_tokens",
)
HEADS = ("CALLS", "FAILED", "INPUT", "OUTPUT", "CACHE READ", "CACHE WRITE")


class _Since(click.ParamType[str]):
    """A day, or how long ago."""

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
            self.fail("write a day as 2024-05-17, or how long ago as 7d or '2 weeks'", param, ctx)


@click.command()
@click.option(
    "--by",
    "wanted",
    type=click.Choice(tuple(FIELDS)),
    multiple=True,
    help="Divide by this; may be given several times (default: day and model).",
)
@click.option("--workspace", "-w", help="Only calls for this workspace.")
@click.option(
    "--since",
    type=_Since(),
    default="30d",
    show_default=True,
    help="The first day: 2024-05-17, or 7d for a week ago.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
@click.pass_obj
def usage(
    state: State, wanted: Sequence[str], workspace: str | None, since: str, as_json: bool
) -> None:
    """Show what calls of models and embedders cost, in tokens. Days are UTC's."""
    names = tuple(dict.fromkeys(wanted)) or ("day", "model")
    with opened(state) as rt:
        rt.storage.check()
        lines = service.overall(
            rt, OPERATOR, [FIELDS[name] for name in names], workspace_id=workspace, since=since
        )
    if as_json:
        for line in lines:
            click.echo(json.dumps(_described(names, line), ensure_ascii=False))
        return
    rows = [
        [_shown(name, line) for name in names]
        + [str(getattr(line.total, number)) for number in NUMBERS]
        for line in lines
    ]
    sums = [sum(getattr(line.total, number) for line in lines) for number in NUMBERS]
    rows.append(["total", *([""] * (len(names) - 1)), *map(str, sums)])
    show_table([*(name.upper() for name in names), *HEADS], rows)


def _value(name: str, line: Line) -> str | None:
    value: str | None = line.workspace if name == "workspace" else getattr(line.total, name)
    return value


def _shown(name: str, line: Line) -> str:
    return _value(name, line) or "-"


def _described(names: Sequence[str], line: Line) -> dict[str, Any]:
    numbers = {number: getattr(line.total, number) for number in (*NUMBERS, "duration_ms")}
    return {name: _value(name, line) for name in names} | numbers
