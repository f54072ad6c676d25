"""The `memservice` command."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import cast

import click

import memservice
from memservice.cli.config import config
from memservice.cli.db import db
from memservice.cli.doctor import doctor
from memservice.cli.dreams import dreams
from memservice.cli.jobs import jobs
from memservice.cli.keys import keys
from memservice.cli.members import console, members
from memservice.cli.options import State
from memservice.cli.plugins import plugins
from memservice.cli.reembed import reembed
from memservice.cli.serve import serve
from memservice.cli.transfer import (
    copy_command,
    export_command,
    import_command,
    import_from_command,
)
from memservice.cli.usage import usage
from memservice.cli.worker import worker
from memservice.domain.errors import ConfigurationError, MemserviceError
from memservice.domain.values import printable


class Commands(click.Group):
    """Ours, and those of plugins. Plugins are loaded only when a command is wanted that is not
    ours, or the list of all."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*super().list_commands(ctx), *self._of_plugins(ctx)})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return super().get_command(ctx, cmd_name) or self._of_plugins(ctx).get(cmd_name)

    def _of_plugins(self, ctx: click.Context) -> dict[str, click.Command]:
        """By name. What a plugin cannot give is told, and stops nobody else."""
        if "memservice.commands" not in ctx.meta:
            ctx.meta["memservice.commands"] = self._ask_plugins(ctx)
        found: dict[str, click.Command] = ctx.meta["memservice.commands"]
        return found

    def _ask_plugins(self, ctx: click.Context) -> dict[str, click.Command]:
        from memservice.plugins import load_plugins

        try:
            loaded = State(ctx.params.get("config_file")).plugins
        except (
            ConfigurationError
        ):  # told by the command that needs the settings; help must work without them
            loaded = load_plugins()
        found: dict[str, click.Command] = {}
        for implementation in loaded.hook.memservice_cli_commands.get_hookimpls():
            plugin = implementation.plugin_name
            try:
                offered = [
                    (command.name or "", command)
                    for command in cast(Iterable[click.Command], implementation.function())
                ]
            except Exception as error:  # a plugin may fail in any way
                click.echo(
                    (
                        f"memservice: no commands from plugin {plugin!r}: "
                        f"{type(error).__name__}: {error}"
                    ),
                    err=True,
                )
                continue
            for name, command in offered:
                if name in self.commands or name in found:
                    click.echo(
                        (
                            f"memservice: the command {name!r} of plugin {plugin!r} is left "
                            "out: there is one already"
                        ),
                        err=True,
                    )
                else:
                    found[name] = command
        return found


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(memservice.__version__, prog_name="memservice")
@click.option(
    "--config",
    "config_file",
    type=click.Path(dir_okay=False, path_type=Path),
    help=(
        "The TOML file with the settings (default: MEMSERVICE_CONFIG, else memservice.toml in "
        "the working directory)."
    ),
)
@click.pass_context
def cli(context: click.Context, config_file: Path | None) -> None:
    """Long-term memory for software agents, self-hosted."""
    context.obj = State(config_file)


for command in (
    serve,
    worker,
    db,
    jobs,
    dreams,
    keys,
    console,
    members,
    plugins,
    config,
    export_command,
    import_command,
    import_from_command,
    copy_command,
    reembed,
    usage,
    doctor,
):
    cli.add_command(command)


def main() -> None:
    """Run the command line; a mistake in settings, plugins or files ends in one sentence, not in a
    traceback."""
    try:
        cli()
    except (MemserviceError, OSError) as error:
        # Of files and of other servers, so it may hold anything, also what a terminal would obey.
        click.echo(f"memservice: {printable(str(error))}", err=True)
        sys.exit(1)
