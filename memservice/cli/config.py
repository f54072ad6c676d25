"""`memservice config`: the settings in force."""

from __future__ import annotations

import click

from memservice.cli.options import State
from memservice.cli.tables import show_table


@click.group()
def config() -> None:
    """Look at the settings."""


@config.command()
@click.option("--all", "everything", is_flag=True, help="Also the settings that nobody set.")
@click.pass_obj
def show(state: State, everything: bool) -> None:
    """Show the effective settings, secrets masked, and where each came from."""
    rows = state.settings.rows(everything)
    show_table(
        ("SETTING", "VALUE", "FROM", "ALSO"),
        [(row.name, row.value_text, row.source, ", ".join(row.aliases)) for row in rows],
    )
