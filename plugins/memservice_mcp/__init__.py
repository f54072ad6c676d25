"""MCP, the Model Context Protocol: memory as tools of assistants such as Claude Code, at `/mcp` and
by `memservice mcp`. The tools call services, as the API does.

The SDK (extra `mcp`) is imported by the first request, or by the command.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from memservice.hookspecs import hookimpl

if TYPE_CHECKING:
    import click
    from flask import Blueprint


@hookimpl
def memservice_blueprints(settings: Any) -> Iterable[Blueprint]:
    if settings.mcp.enabled:
        from memservice_mcp.blueprint import blueprint

        yield blueprint()


@hookimpl
def memservice_cli_commands() -> Iterable[click.Command]:
    from memservice_mcp.command import mcp

    yield mcp
