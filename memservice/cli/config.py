"""`memservice config`: the settings in force."""

from __future__ import annotations

import click

from memservice.cli.options import State
from memservice.cli.tables import show_table


@click.group()
def config() -> None:
    """Inspect the settings."""


@config.command()
@click.option("--all", "everything", is_flag=True, help="Include settings with their defaults.")
@click.pass_obj
def show(state: State, everything: bool) -> None:
    """Show the effective settings and the source of each. Secrets are masked."""
    rows = state.settings.rows(everything)
    show_table(
        ("SETTING", "VALUE", "FROM", "ALSO"),
        [(row.name, row.value_text, row.source, ", ".join(row.aliases)) for row in rows],
    )
