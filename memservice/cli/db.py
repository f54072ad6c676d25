"""`memservice db`: the schema of the store."""

from __future__ import annotations

import click

from memservice.cli.options import State
from memservice.runtime import Runtime


@click.group()
def db() -> None:
    """Look after the database."""


@db.command()
@click.pass_obj
def upgrade(state: State) -> None:
    """Bring the schema to this release's. Safe to run again, and while others run it."""
    runtime = Runtime(state.settings, state.plugins)
    try:
        before = runtime.storage.schema_version()
        runtime.storage.migrate()
        after = runtime.storage.schema_version()
    finally:
        runtime.close()
    click.echo(f"schema {after}: nothing to do" if before == after else f"schema {before or 'empty'} -> {after}")


@db.command()
@click.pass_obj
def current(state: State) -> None:
    """Show which schema the store has."""
    runtime = Runtime(state.settings, state.plugins)
    try:
        click.echo(runtime.storage.schema_version() or "empty")
    finally:
        runtime.close()
