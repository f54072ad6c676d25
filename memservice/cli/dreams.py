"""`memservice dreams`: review, apply, discard and undo what dreams change. Works with or without a
running server."""

from __future__ import annotations

import json
from typing import Any

import click
from msgspec import Struct
from msgspec.structs import asdict

from memservice.cli.operator import OPERATOR
from memservice.cli.options import State, limit_option
from memservice.cli.stores import opened
from memservice.cli.tables import show_rest, show_table
from memservice.domain.times import wire_seconds
from memservice.domain.values import printable
from memservice.services import dream_changes, dream_descriptions, workspaces
from memservice.services.dream_descriptions import Dream
from memservice.services.paging import Paging

_workspace = click.option("--workspace", "-w", required=True, help="The dream's workspace.")


@click.group()
def dreams() -> None:
    """Review dreams that are held because they would supersede too much; undo dreams."""


@dreams.command("list")
@_workspace
@limit_option("dreams")
@click.pass_obj
def list_(state: State, /, workspace: str, limit: int) -> None:
    """List dreams, newest first."""
    with opened(state) as rt:
        rt.storage.check()
        with rt.storage.read() as tx:
            workspaces.require(tx, workspace)
        page = dream_descriptions.page(rt, OPERATOR, workspace, Paging(size=limit))
    rows = [
        (
            dream.uid,
            dream.state,
            dream.kind,
            dream.observer or "-",
            dream.observed or "-",
            str(dream.created),
            str(dream.superseded),
            wire_seconds(dream.created_at),
        )
        for dream in page.items
    ]
    head = ("ID", "STATE", "KIND", "OBSERVER", "OBSERVED", "CREATED", "SUPERSEDED", "CREATED AT")
    show_table(head, rows)
    show_rest(len(rows), page.total)


@dreams.command()
@click.argument("id")
@_workspace
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
@click.pass_obj
def show(state: State, /, id: str, workspace: str, as_json: bool) -> None:
    """Show what a dream changed, or proposes to change."""
    with opened(state) as rt:
        rt.storage.check()
        dream = dream_descriptions.show(rt, OPERATOR, workspace, id)
    if as_json:
        click.echo(json.dumps(asdict(dream), default=_json_value, ensure_ascii=False))
        return
    for line in _lines(dream):
        click.echo(printable(line))


def _json_value(value: Any) -> Any:
    return asdict(value) if isinstance(value, Struct) else str(value)


def _lines(dream: Dream) -> list[str]:
    lines = [f"{dream.kind} dream about {dream.observed or '-'}: {dream.state}"]
    if dream.reason:
        lines.append(f"reason: {dream.reason}")
    for change in dream.changes:
        text = change.content or "(gone)"
        if change.action == "create":
            lines.append(f"+ {text}")
        else:
            successor = f"  -> {change.successor}" if change.successor else "  (no successor)"
            lines.append(f"- {change.conclusion_id}  {text}{successor}")
    if dream.card is not None:
        lines += [f"card - {line}" for line in dream.card.before if line not in dream.card.after]
        lines += [f"card + {line}" for line in dream.card.after if line not in dream.card.before]
    return lines


@dreams.command()
@click.argument("id")
@_workspace
@click.pass_obj
def apply(state: State, /, id: str, workspace: str) -> None:
    """Queue a held dream, to be applied by a worker."""
    with opened(state) as rt:
        rt.storage.check()
        dream_changes.apply(rt, OPERATOR, workspace, id)
    click.echo("a worker applies it")


@dreams.command()
@click.argument("id")
@_workspace
@click.pass_obj
def discard(state: State, /, id: str, workspace: str) -> None:
    """Discard a dream that is held."""
    with opened(state) as rt:
        rt.storage.check()
        dream_changes.discard(rt, OPERATOR, workspace, id)
    click.echo("discarded")


@dreams.command()
@click.argument("id")
@_workspace
@click.pass_obj
def undo(state: State, /, id: str, workspace: str) -> None:
    """Undo the changes of a dream, except for rows that have changed since."""
    with opened(state) as rt:
        rt.storage.check()
        undone = dream_changes.undo(rt, OPERATOR, workspace, id)
    card = ", card restored" if undone.card_restored else ""
    click.echo(
        f"{undone.restored} restored, {undone.removed} removed, {undone.kept} kept as they "
        f"changed since{card}"
    )
