"""The `memservice` command."""

from __future__ import annotations

import sys
from collections import UserDict
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import click

import memservice
from memservice.cli.options import State
from memservice.domain.errors import ConfigurationError, MemserviceError
from memservice.domain.values import printable

COMMANDS = {
    "init": "init:init",
    "serve": "serve:serve",
    "worker": "worker:worker",
    "workers": "workers:workers",
    "db": "db:db",
    "jobs": "jobs:jobs",
    "dreams": "dreams:dreams",
    "erasures": "erasures:erasures",
    "keys": "keys:keys",
    "console": "members:console",
    "members": "members:members",
    "plugins": "plugins:plugins",
    "config": "config:config",
    "export": "transfer:export_command",
    "import": "transfer:import_command",
    "import-from": "transfer:import_from_command",
    "import-history": "history:import_history_command",
    "copy": "transfer:copy_command",
    "backup": "backups:backup",
    "restore": "backups:restore",
    "reembed": "reembed:reembed",
    "usage": "usage:usage",
    "doctor": "doctor:doctor",
    "workspaces": "look:workspaces",
    "peers": "look:peers",
    "sessions": "look:sessions",
    "search": "look:search",
    "show": "look:show",
    "ask": "look:ask",
}
"""The built-in commands: name → module of this package, and variable. A call imports only the
module of its own command: all of them take a second."""


class BuiltInCommands(UserDict[str, Any]):
    """The built-in commands by name, each imported when it is looked up."""

    def __getitem__(self, name: str) -> click.Command:
        module, _, variable = super().__getitem__(name).partition(":")
        command: click.Command = getattr(import_module(f"memservice.cli.{module}"), variable)
        return command


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


@click.group(
    cls=Commands,
    commands=BuiltInCommands(COMMANDS),
    context_settings={"help_option_names": ["-h", "--help"]},
)
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
    from memservice.cli.stores import CommandState

    context.obj = CommandState(config_file)


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
