"""`memservice import-history`: memories and conversations of other systems."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from memservice.cli.options import State
from memservice.cli.stores import opened, prepared
from memservice.cli.transfer import ERASURES, resumable, with_progress
from memservice.runtime import Runtime
from memservice.services.transfer.histories import importing
from memservice.services.transfer.histories.formats import FORMATS
from memservice.services.transfer.histories.importing import HistoryReport, HistoryRequest
from memservice.services.transfer.histories.sources import Progress

_REASONS = {
    "outdated": "that their system marked as no longer true",
    "refused": "that a plugin refused",
    "changed": "in conversations that differ from those stored here",
    "expired": (
        "without a time, in conversations of which retention erased messages "
        "(--no-respect-erasures imports them)"
    ),
    "repeated": "that occur twice",
}


@click.command("import-history")
@click.option("--workspace", "-w", required=True, help="The workspace; created if missing.")
@click.option(
    "--user",
    default="user",
    show_default=True,
    help="The peer of the user, where the file does not name it.",
)
@click.option("--dry-run", is_flag=True, help="Read and check the file, and store nothing.")
@click.option(
    "--derive/--no-derive",
    default=True,
    show_default=True,
    help="Derive conclusions from the new messages, as from messages that clients store.",
)
@ERASURES
@click.argument("format_name", metavar="FORMAT", type=click.Choice(list(FORMATS)))
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.pass_obj
def import_history_command(
    state: State,
    workspace: str,
    user: str,
    dry_run: bool,
    derive: bool,
    respect_erasures: bool,
    format_name: str,
    file: Path,
) -> None:
    """Import memories or conversations of another system from FILE into a workspace.

    FORMAT is mem0, zep, letta, chatgpt, claude or chat (lines of JSON). The whole file is checked
    before anything is stored. You can repeat the command, also with a newer file: existing rows do
    not change.
    """
    if not file.is_file():
        raise click.ClickException(f"there is no file {file}")
    request = HistoryRequest(
        file=file,
        format_name=format_name,
        workspace_id=workspace,
        user=user,
        derive=derive,
        respect_erasures=respect_erasures,
        dry_run=dry_run,
    )
    store = opened(state) if dry_run else prepared(state)
    with resumable(), store as runtime:
        report = _load(runtime, request)
    _show(report, workspace)


def _load(runtime: Runtime, request: HistoryRequest) -> HistoryReport:
    with _read_progress() as progress:
        return importing.load(
            runtime,
            request,
            progress,
            lambda lines, number: with_progress(lines, "storing", number),
        )


@contextmanager
def _read_progress() -> Iterator[Progress]:
    with click.progressbar(length=100, label="reading", file=sys.stderr) as bar:

        def progress(position: int, total: int) -> None:
            bar.update(position * 100 // total - bar.pos)

        yield progress


def _show(report: HistoryReport, workspace: str) -> None:
    numbers = ", ".join(f"{number} {kind}" for kind, number in report.read.items() if number)
    outcome = ""
    if report.report is None:
        outcome = "; dry run: nothing was stored"
    else:
        new = ", ".join(
            f"{report.report.stored[kind]} {kind}"
            for kind in report.read
            if report.report.stored.get(kind)
        )
        outcome = f"; stored {new or 'nothing new'}"
    click.echo(f"{workspace}: read {numbers or 'nothing'}{outcome}")
    for reason, number in report.left_out.items():
        click.echo(f"left out: {number} {_REASONS[reason]}", err=True)
    erased = 0 if report.report is None else sum(report.report.left_out.values())
    if erased:
        click.echo(
            f"left out: {erased} rows that were erased here or rest on erased rows "
            "(--no-respect-erasures imports them)",
            err=True,
        )
