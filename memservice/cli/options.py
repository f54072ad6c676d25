"""Code that the commands share."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

import click
from msgspec import Struct

from memservice.domain.durations import parse_duration
from memservice.plugins import Plugins, load_plugins
from memservice.settings import Settings, load_settings


class State(Struct, dict=True):
    """The settings of this call, loaded at first use."""

    config_file: Path | None

    @cached_property
    def settings(self) -> Settings:
        return load_settings(self.config_file)

    @cached_property
    def plugins(self) -> Plugins:
        return load_plugins(self.settings)

    def environment(self) -> dict[str, str]:
        """The environment for a child process with the same settings."""
        environment = dict(os.environ)
        if self.config_file is not None:
            environment["MEMSERVICE_CONFIG"] = str(self.config_file.resolve())
        if self.settings.data_directory is not None:
            environment["DB_CONNECTION_URI"] = self.settings.db.connection_uri
        return environment


def limit_option(rows: str, default: int = 50) -> Callable[[Any], Any]:
    """`--limit` of a command that lists `rows`."""
    return click.option(
        "--limit",
        type=click.IntRange(1, 10_000),
        default=default,
        show_default=True,
        help=f"Maximum number of {rows}.",
    )


selected_workspaces = click.option(
    "--workspace",
    "-w",
    "workspace_ids",
    multiple=True,
    help="Only this workspace. Repeat the option for several (default: all).",
)
json_lines = click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")


class Duration(click.ParamType[timedelta]):
    """A duration such as 90d, 1h30m, '2 weeks'."""

    name = "duration"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> timedelta:
        if isinstance(value, timedelta):
            return value
        try:
            return parse_duration(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)
