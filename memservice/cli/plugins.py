"""`memservice plugins`: what is offered, by whom, and what failed to load."""

from __future__ import annotations

import sys

import click

from memservice.cli.options import State
from memservice.cli.tables import show_table


@click.command()
@click.pass_obj
def plugins(state: State) -> None:
    """List what the installed plugins offer. Ends with 1 if one of them failed to load."""
    rows = state.plugins.listing()
    show_table(
        ("KIND", "NAME", "PLUGIN", "FROM", "DETAIL"), [(row.kind, row.name, row.plugin, row.distribution, row.detail) for row in rows]
    )
    if state.plugins.failures:
        sys.exit(1)
