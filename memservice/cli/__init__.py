"""The `memservice` command."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import cast

import click

import memservice
from memservice.cli.backups import backup, restore
from memservice.cli.config import config
from memservice.cli.db import db
from memservice.cli.doctor import doctor
from memservice.cli.dreams import dreams
from memservice.cli.erasures import erasures
from memservice.cli.history import import_history_command
from memservice.cli.init import init
from memservice.cli.jobs import jobs
from memservice.cli.keys import keys
from memservice.cli.look import ask, peers, search, sessions, show, workspaces
from memservice.cli.members import console, members
from memservice.cli.options import State
from memservice.cli.plugins import plugins
from memservice.cli.reembed import reembed
from memservice.cli.serve import serve
from memservice.cli.stores import CommandState
from memservice.cli.transfer import (
    copy_command,
    export_command,
    import_command,
    import_from_command,
)
from memservice.cli.usage import usage
from memservice.cli.worker import worker
from memservice.cli.workers import workers
from memservice.domain.errors import ConfigurationError, MemserviceError
from memservice.domain.values import printable


class Commands(click.Group):
    """Built-in commands and those of plugins. Plugins are loaded only for a command that is not
    built in, and for the list of all commands."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*super().list_commands(ctx), *self._plugin_commands(ctx)})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return super().get_command(ctx, cmd_name) or self._plugin_commands(ctx).get(cmd_name)

    def _plugin_commands(self, ctx: click.Context) -> dict[str, click.Command]:
        """Commands of plugins by name. A plugin that fails is reported, and does not affect
        others."""
        if "memservice.commands" not in ctx.meta:
            ctx.meta["memservice.commands"] = self._load_plugin_commands(ctx)
        commands: dict[str, click.Command] = ctx.meta["memservice.commands"]
        return commands

    def _load_plugin_commands(self, ctx: click.Context) -> dict[str, click.Command]:
        from memservice.plugins import load_plugins

        try:
            loaded = State(ctx.params.get("config_file")).plugins
        except ConfigurationError:
            # The command that needs the settings reports the error. Help must work without them.
            loaded = load_plugins()
        commands: dict[str, click.Command] = {}
        for implementation in loaded.hook.memservice_cli_commands.get_hookimpls():
            plugin = implementation.plugin_name
            try:
                provided = [
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
            for name, command in provided:
                if name in self.commands or name in commands:
                    click.echo(
                        (
                            f"memservice: the command {name!r} of plugin {plugin!r} is ignored: "
                            "a command of this name exists already"
                        ),
                        err=True,
                    )
                else:
                    commands[name] = command
        return commands


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(memservice.__version__, prog_name="memservice")
@click.option(
    "--config",
    "config_file",
    type=click.Path(dir_okay=False, path_type=Path),
    help=(
        "TOML file with the settings (default: MEMSERVICE_CONFIG, else memservice.toml in "
        "the working directory)."
    ),
)
@click.pass_context
def cli(context: click.Context, config_file: Path | None) -> None:
    """Long-term memory for software agents, self-hosted."""
    context.obj = CommandState(config_file)


for command in (
    init,
    serve,
    worker,
    workers,
    db,
    jobs,
    dreams,
    erasures,
    keys,
    console,
    members,
    plugins,
    config,
    export_command,
    import_command,
    import_from_command,
    import_history_command,
    copy_command,
    backup,
    restore,
    reembed,
    usage,
    doctor,
    workspaces,
    peers,
    sessions,
    search,
    show,
    ask,
):
    cli.add_command(command)


def sentence(error: MemserviceError | OSError) -> str:
    """The error for a person at the command line."""
    if isinstance(error, OSError) and error.filename and error.strerror:
        return f"{error.filename}: {error.strerror}"
    return str(error)


def main() -> None:
    """Run the command line. An error in settings, plugins or files prints one sentence, not a
    traceback."""
    try:
        cli()
    except (MemserviceError, OSError) as error:
        # The message may contain text of files and servers, so also terminal control sequences.
        click.echo(f"memservice: {printable(sentence(error))}", err=True)
        sys.exit(1)
