"""`memservice db`: the schema of the store."""

from __future__ import annotations

from contextlib import closing

import click

from memservice.cli.options import State
from memservice.cli.stores import checked_store, opened, place_explained, schema_of
from memservice.compose import open_runtime
from memservice.services import store_compatibility
from memservice.settings import data_directory


@click.group()
def db() -> None:
    """Manage the database."""


@db.command()
@click.pass_obj
def upgrade(state: State) -> None:
    """Upgrade the schema to this release. Safe to repeat, and to run in several processes."""
    data_directory.create(state.settings.data_directory)
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
    """Show the schema version of the store."""
    with (
        place_explained(state.settings),
        closing(open_runtime(state.settings, plugins=state.plugins)) as runtime,
    ):
        click.echo(runtime.storage.schema_version() or "empty")


@db.command()
@click.pass_obj
def vacuum(state: State) -> None:
    """Remove the remains of erased rows from the store's indexes and logs and free their space, as
    far as the storage does not do so itself.

    Other writes wait until it ends, so run it at a quiet time. A SQLite file is rewritten, which
    temporarily needs its size again in free disk space.
    """
    with checked_store(state) as runtime:
        while runtime.storage.reclaim(thorough=True):
            pass
    click.echo("done")


@db.command()
@click.pass_obj
def recount(state: State) -> None:
    """Count the tokens of all messages again, after a release with another tokenizer. Stop servers
    and workers first."""
    with opened(state) as runtime:
        length, _ = store_compatibility.rows_to_do(runtime)
        with click.progressbar(length=length, label="counting") as bar:
            number = store_compatibility.recount(runtime, bar.update)
    click.echo(f"{number} messages counted")


@db.command()
@click.pass_obj
def reindex(state: State) -> None:
    """Rebuild the text index, after a release with another text analyser. Stop servers and workers
    first."""
    with opened(state) as runtime:
        _, length = store_compatibility.rows_to_do(runtime)
        with click.progressbar(length=length, label="indexing") as bar:
            number = store_compatibility.reindex(runtime, bar.update)
    click.echo(f"{number} rows indexed")
