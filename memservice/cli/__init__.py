"""The `memservice` command."""

from __future__ import annotations

import sys
from pathlib import Path

import click

import memservice
from memservice.cli.config import config
from memservice.cli.db import db
from memservice.cli.options import State
from memservice.cli.plugins import plugins
from memservice.cli.serve import serve
from memservice.cli.worker import worker
from memservice.domain.errors import MemserviceError


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(memservice.__version__, prog_name="memservice")
@click.option(
    "--config",
    "config_file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The TOML file with the settings (default: MEMSERVICE_CONFIG, else memservice.toml in the working directory).",
)
@click.pass_context
def cli(context: click.Context, config_file: Path | None) -> None:
    """Long-term memory for software agents, self-hosted."""
    context.obj = State(config_file)


for command in (serve, worker, db, plugins, config):
    cli.add_command(command)


def main() -> None:
    """Run the command line; a mistake in settings or plugins ends in one sentence, not in a traceback."""
    try:
        _add_plugin_commands()
        cli()
    except MemserviceError as error:
        click.echo(f"memservice: {error}", err=True)
        sys.exit(1)


def _add_plugin_commands() -> None:
    from memservice.plugins import load_plugins

    for commands in load_plugins().hook.memservice_cli_commands():
        for command in commands:
            cli.add_command(command)
