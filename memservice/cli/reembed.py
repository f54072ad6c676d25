"""`memservice reembed`: new vectors, by another embedder, while servers and workers run."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import click

from memservice.cli.options import State
from memservice.cli.stores import opened
from memservice.domain.errors import Conflict
from memservice.domain.records import Lease, Workspace
from memservice.operations import reembed as service
from memservice.operations.reembed import Erased, Moved, Progress
from memservice.runtime import Runtime
from memservice.spi.embedding import Embedder
from memservice.worker.runner import LeaseLost

BATCH_SIZE = 100
"""Workspaces whose old vectors are kept until they are dropped together."""


@click.command()
@click.option(
    "--to",
    "name",
    required=True,
    metavar="NAME",
    help="The embedder, as `EMBEDDER` names it; opened as the settings say.",
)
@click.option(
    "--workspace",
    "-w",
    "slugs",
    multiple=True,
    help="Only this workspace; may be given again (default: all).",
)
@click.pass_obj
def reembed(state: State, name: str, slugs: tuple[str, ...]) -> None:
    """Make the vectors of workspaces anew by the embedder NAME, and drop the old ones.

    Servers and workers go on meanwhile: each workspace is answered from its old vectors until all
    the new ones are there. What broke off is simply run again and goes on where it was. Run it
    again also where rows lack vectors: only those that are missing are made.
    """
    with opened(state, "batch") as rt:
        rt.storage.check()
        target = rt.open_embedder(name)
        seen: set[int] = set()
        moved = 0
        while True:
            # Servers that are configured otherwise may have begun further workspaces in the
            # meantime.
            workspaces = [
                workspace for workspace in service.chosen(rt, slugs) if workspace.key not in seen
            ][:BATCH_SIZE]
            if not workspaces:
                break
            seen.update(workspace.key for workspace in workspaces)
            changed = sum([_build(rt, target, workspace) for workspace in workspaces])
            moved += changed
            time.sleep(service.GRACE_SECONDS if changed else 0)
            for workspace in workspaces:
                _settle(rt, target, workspace)
        click.echo(f"{len(seen)} workspaces looked at, {moved} moved to {target.id}")
        if rt.embedder.id != target.id:
            click.echo(
                (
                    f"New workspaces still begin with {rt.embedder.id}: set EMBEDDER={name} "
                    "and start servers and workers again."
                ),
                err=True,
            )


def _build(rt: Runtime, target: Embedder, workspace: Workspace) -> bool:
    moved: Sequence[Moved] = []
    with _moving(rt, workspace) as lease, _bar(rt, target, workspace) as progress:
        moved = service.build(rt, target, workspace, lease, progress)
    for part in moved:
        was = f", was {part.was}" if part.was else ""
        click.echo(
            f"{workspace.slug}: {part.made} vectors of kind {part.kind} made by {target.id}{was}"
        )
    return bool(moved)


def _settle(rt: Runtime, target: Embedder, workspace: Workspace) -> None:
    made = 0
    with _moving(rt, workspace) as lease:
        made = service.settle(rt, target, workspace, lease, lambda rows: None)
    if made:
        click.echo(f"{workspace.slug}: {made} vectors of rows that had none yet")


@contextmanager
def _moving(rt: Runtime, workspace: Workspace) -> Iterator[Lease]:
    def waiting() -> None:
        click.echo(f"{workspace.slug}: another process is at it, waiting for it to end", err=True)

    try:
        with service.held(rt, workspace.key, waiting) as lease:
            yield lease
    except Erased:
        click.echo(f"{workspace.slug}: deleted meanwhile", err=True)
    except LeaseLost:
        raise Conflict(
            f"{workspace.slug}: another process took over while this one was away; run it "
            "again to see that all is done"
        ) from None


@contextmanager
def _bar(rt: Runtime, target: Embedder, workspace: Workspace) -> Iterator[Progress]:
    with click.progressbar(
        length=service.rows_of(rt, target, workspace.key), label=workspace.slug, file=sys.stderr
    ) as bar:
        update: Callable[[int], None] = bar.update
        yield update
