"""`memservice config`: the settings in force."""

from __future__ import annotations

import click

from memservice.cli.options import State
from memservice.cli.tables import show_table
from memservice.plugins import setting_rows


@click.group()
def config() -> None:
    """Inspect the settings."""


@config.command()
@click.option("--all", "everything", is_flag=True, help="Include settings with their defaults.")
@click.pass_obj
def show(state: State, everything: bool) -> None:
    """Show the settings that are set, and the source of each. Secrets are masked."""
    for note in state.settings.notes:
        click.echo(f"WARNING     {note}", err=True)
    rows = setting_rows(state.settings, state.plugins, everything)
    if not everything:
        rows = [row for row in rows if row.source != "default"]
    if not rows:
        click.echo("nothing is set; --all shows the defaults")
        return
    show_table(
        ("SETTING", "VALUE", "FROM", "ALSO"),
        [(row.name, row.value_text, row.source, ", ".join(row.aliases)) for row in rows],
    )
