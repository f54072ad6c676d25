"""`memservice reembed`: new vectors by another embedder, while servers and workers run."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import click

from memservice.cli.options import State, selected_workspaces
from memservice.cli.stores import opened
from memservice.domain.errors import Conflict
from memservice.domain.records import Lease, Workspace
from memservice.operations import reembed as service
from memservice.operations.reembed import Erased, Moved, Progress
from memservice.runtime import Runtime
from memservice.spi.embedding import Embedder
from memservice.worker.runner import LeaseLost

BATCH_SIZE = 100
"""Workspaces whose old vectors are dropped together."""


@click.command()
@click.option(
    "--to",
    "name",
    required=True,
    metavar="NAME",
    help="The embedder, by its name in the setting EMBEDDER. Its settings apply.",
)
@selected_workspaces
@click.pass_obj
def reembed(state: State, name: str, workspace_ids: tuple[str, ...]) -> None:
    """Create new vectors of workspaces with the embedder NAME, and drop the old ones.

    Servers and workers keep running: searches in a workspace use its old vectors until all new ones
    exist. If the command is interrupted, run it again: it continues where it stopped. Run it also
    if rows lack vectors: it creates only missing vectors.
    """
    with opened(state, "batch") as rt:
        rt.storage.check()
        target = rt.open_embedder(name)
        processed: set[int] = set()
        moved = 0
        while True:
            # Servers with another configuration may have created workspaces since the last batch.
            workspaces = [
                workspace
                for workspace in service.chosen(rt, workspace_ids)
                if workspace.key not in processed
            ][:BATCH_SIZE]
            if not workspaces:
                break
            processed.update(workspace.key for workspace in workspaces)
            changed = sum([_build(rt, target, workspace) for workspace in workspaces])
            moved += changed
            time.sleep(service.GRACE_SECONDS if changed else 0)
            for workspace in workspaces:
                _embed_missing(rt, target, workspace)
        click.echo(f"{len(processed)} workspaces checked, {moved} moved to {target.id}")
        if rt.embedder.id != target.id:
            click.echo(
                (
                    f"New workspaces still use {rt.embedder.id}: set EMBEDDER={name} "
                    "and restart servers and workers."
                ),
                err=True,
            )


def _build(rt: Runtime, target: Embedder, workspace: Workspace) -> bool:
    moved: Sequence[Moved] = []
    with _lease(rt, workspace) as lease, _bar(rt, target, workspace) as progress:
        moved = service.build(rt, target, workspace, lease, progress)
    for space in moved:
        previous = f", was {space.previous}" if space.previous else ""
        click.echo(
            f"{workspace.slug}: {space.created} vectors of kind {space.kind} created by {target.id}"
            f"{previous}"
        )
    return bool(moved)


def _embed_missing(rt: Runtime, target: Embedder, workspace: Workspace) -> None:
    count = 0
    with _lease(rt, workspace) as lease:
        count = service.settle(rt, target, workspace, lease, lambda rows: None)
    if count:
        click.echo(f"{workspace.slug}: {count} missing vectors created")


@contextmanager
def _lease(rt: Runtime, workspace: Workspace) -> Iterator[Lease]:
    def waiting() -> None:
        click.echo(f"{workspace.slug}: waiting for another process to finish it", err=True)

    try:
        with service.hold_lease(rt, workspace.key, waiting) as lease:
            yield lease
    except Erased:
        click.echo(f"{workspace.slug}: deleted while the command ran", err=True)
    except LeaseLost:
        raise Conflict(
            f"{workspace.slug}: another process took over after this one had lost its lease; run "
            "the command again to make sure that it is complete"
        ) from None


@contextmanager
def _bar(rt: Runtime, target: Embedder, workspace: Workspace) -> Iterator[Progress]:
    with click.progressbar(
        length=service.rows_of(rt, target, workspace.key), label=workspace.slug, file=sys.stderr
    ) as bar:
        update: Callable[[int], None] = bar.update
        yield update
