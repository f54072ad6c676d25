"""`memservice erasures`: the receipts of erasures. Works with or without a running server."""

from __future__ import annotations

import json

import click

from memservice.cli.operator import OPERATOR
from memservice.cli.options import State, limit_option
from memservice.cli.stores import opened
from memservice.cli.tables import show_table
from memservice.domain.times import wire_seconds
from memservice.domain.values import printable
from memservice.services.erasure import receipts
from memservice.services.paging import Paging

_workspace = click.option(
    "--workspace", "-w", help="Only erasures in workspaces with this id, also in erased ones."
)


@click.group()
def erasures() -> None:
    """Show what was erased, for whom, when, and whether it is finished."""


@erasures.command("list")
@_workspace
@limit_option("erasures")
@click.pass_obj
def list_(state: State, /, workspace: str | None, limit: int) -> None:
    """List erasures, newest first."""
    with opened(state) as rt:
        rt.storage.check()
        page = receipts.page_of_store(rt, OPERATOR, Paging(size=limit), workspace)
    rows = [
        (
            receipt.uid,
            receipt.state,
            receipt.kind,
            receipt.workspace,
            receipt.target,
            receipt.requested_by,
            wire_seconds(receipt.created_at),
            "-" if receipt.finished_at is None else wire_seconds(receipt.finished_at),
        )
        for receipt in page.items
    ]
    head = ("ID", "STATE", "KIND", "WORKSPACE", "TARGET", "BY", "CREATED AT", "FINISHED AT")
    show_table(head, rows)


@erasures.command()
@click.argument("id")
@click.pass_obj
def show(state: State, /, id: str) -> None:
    """Show the receipt of an erasure as a JSON object."""
    with opened(state) as rt:
        rt.storage.check()
        receipt = receipts.get_of_store(rt, OPERATOR, id)
    click.echo(printable(json.dumps(receipts.as_json(receipt), ensure_ascii=False)))


@erasures.command()
@_workspace
@click.pass_obj
def export(state: State, /, workspace: str | None) -> None:
    """Print all receipts as JSON lines, newest first."""
    with opened(state) as rt:
        rt.storage.check()
        for line in receipts.export(rt, OPERATOR, workspace):
            click.echo(json.dumps(line, ensure_ascii=False))
