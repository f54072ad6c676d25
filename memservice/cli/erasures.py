"""`memservice erasures`: the receipts of erasures. Works with or without a running server."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import click

from memservice.cli.operator import OPERATOR
from memservice.cli.options import State, limit_option
from memservice.cli.stores import checked_store, opened
from memservice.cli.tables import show_table
from memservice.domain.times import wire_seconds
from memservice.domain.values import printable
from memservice.services.erasure import receipts, repeating
from memservice.services.erasure.repeating import EarlierErasure
from memservice.services.paging import Paging

_workspace = click.option(
    "--workspace", "-w", help="Only erasures in workspaces with this id, also in erased ones."
)


_OUTCOMES = {
    repeating.ABSENT: "erased nothing: what they name is not in this store",
    repeating.NEWER: "left out: what has the id now was created after the erasure",
    repeating.BY_RETENTION: "left out: retention erases by itself what is too old",
}


@click.group()
def erasures() -> None:
    """Show what was erased, for whom, when, and whether it is finished; repeat it in a store."""


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


@erasures.command()
@click.option("--dry-run", is_flag=True, help="Show what would be erased, and erase nothing.")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.pass_obj
def repeat(state: State, /, dry_run: bool, file: Path) -> None:
    """Erase again what the receipts in FILE name, after a backup was restored.

    FILE is that of `memservice restore` or of `memservice erasures export`. All of it is checked
    before anything is erased. Workers carry the erasures out; `memservice erasures list` shows
    them. You can repeat the command: it skips what is already erased.
    """
    # Receipts are exported newest first; an erasure can depend on an earlier one.
    earlier = list(_read(file))[::-1]
    outcomes: Counter[str] = Counter()
    with checked_store(state) as rt:
        for erasure in earlier:
            outcome = repeating.repeat(rt, OPERATOR, erasure, dry_run=dry_run)
            outcomes[outcome] += 1
            if outcome == repeating.REPEATED:
                verb = "would erase" if dry_run else "erasing"
                where = "" if erasure.kind == receipts.WORKSPACE else f" of {erasure.workspace}"
                click.echo(printable(f"{verb} {erasure.kind} {erasure.target}{where}"))
    click.echo(
        f"{outcomes[repeating.REPEATED]} of {len(earlier)} erasures repeated"
        f"{' (dry run)' if dry_run else ''}"
    )
    for outcome, text in _OUTCOMES.items():
        if outcomes[outcome]:
            click.echo(f"{outcomes[outcome]} {text}")


def _read(file: Path) -> Iterator[EarlierErasure]:
    for number, line in enumerate(file.read_bytes().splitlines(), 1):
        try:
            receipt = json.loads(line)
            if not isinstance(receipt, dict):
                raise ValueError("it is not a JSON object")
            yield repeating.parse(receipt)
        except ValueError as error:
            raise click.ClickException(
                f"line {number} of {file} is no receipt of an erasure: {error}. Nothing was erased"
            ) from error
