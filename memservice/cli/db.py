"""`memservice db`: the schema of the store."""

from __future__ import annotations

import click

from memservice.cli.options import State
from memservice.cli.stores import schema_of, sound
from memservice.compose import open_runtime
from memservice.services import store_compatibility


@click.group()
def db() -> None:
    """Look after the database."""


@db.command()
@click.pass_obj
def upgrade(state: State) -> None:
    """Bring the schema to this release's. Safe to run again, and while others run it."""
    runtime = open_runtime(state.settings, plugins=state.plugins)
    try:
        before = schema_of(runtime)
        runtime.storage.migrate()
        store_compatibility.initialise(runtime)
        after = runtime.storage.schema_version()
    finally:
        runtime.close()
    click.echo(
        f"schema {after}: nothing to do"
        if before == after
        else f"schema {before or 'empty'} -> {after}"
    )


@db.command()
@click.pass_obj
def current(state: State) -> None:
    """Show which schema the store has."""
    runtime = open_runtime(state.settings, plugins=state.plugins)
    try:
        click.echo(runtime.storage.schema_version() or "empty")
    finally:
        runtime.close()


@db.command()
@click.pass_obj
def vacuum(state: State) -> None:
    """Let go at once of what erased rows left in the store's indexes, logs and free room, as far as
    the storage does not do it itself.

    Other writes wait meanwhile: best when little is going on. A SQLite file is written anew, which
    takes as much room again.
    """
    with sound(state) as runtime:
        while runtime.storage.reclaim(thorough=True):
            pass
    click.echo("done")


@db.command()
@click.pass_obj
def recount(state: State) -> None:
    """Count the tokens of every message again, after a release that counts otherwise. Stop servers
    and workers first."""
    runtime = open_runtime(state.settings, plugins=state.plugins)
    try:
        length, _ = store_compatibility.rows_to_do(runtime)
        with click.progressbar(length=length, label="counting") as bar:
            done = store_compatibility.recount(runtime, bar.update)
    finally:
        runtime.close()
    click.echo(f"{done} messages counted")


@db.command()
@click.pass_obj
def reindex(state: State) -> None:
    """Build the text index again, after a release that analyses texts otherwise. Stop servers and
    workers first."""
    runtime = open_runtime(state.settings, plugins=state.plugins)
    try:
        _, length = store_compatibility.rows_to_do(runtime)
        with click.progressbar(length=length, label="indexing") as bar:
            done = store_compatibility.reindex(runtime, bar.update)
    finally:
        runtime.close()
    click.echo(f"{done} rows indexed")
