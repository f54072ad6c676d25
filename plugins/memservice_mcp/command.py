"""`memservice mcp`: the server over stdin and stdout, for assistants that start it themselves."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import click

from memservice.domain.errors import ConfigurationError
from memservice.domain.installation import install_command
from memservice_mcp.blueprint import EXTRA


@click.command("mcp")
@click.option("--workspace", help="The workspace (default: MCP_WORKSPACE).")
@click.option("--peer", help="The peer that tools are about by default (default: MCP_PEER).")
@click.option(
    "--url",
    envvar="MEMSERVICE_URL",
    help="Use the server at this URL, for instance http://127.0.0.1:8000, instead of the store of "
    "the settings. Also read from MEMSERVICE_URL.",
)
@click.option(
    "--key",
    envvar="MEMSERVICE_API_KEY",
    help="API key for --url. Prefer MEMSERVICE_API_KEY: others can read command lines.",
)
@click.pass_obj
def mcp(
    state: Any, workspace: str | None, peer: str | None, url: str | None, key: str | None
) -> None:
    """Serve the memory to an assistant as tools, over stdin and stdout (MCP).

    Works on the store of the settings, whether a server runs or not. It does no background work:
    `memservice serve` or `memservice worker` does.
    """
    if find_spec("mcp") is None:
        raise ConfigurationError(f"memservice mcp needs the package mcp: {install_command(EXTRA)}")
    if url is not None:
        from memservice_mcp import forwarding

        forwarding.run(url, key, workspace, peer)
        return
    from memservice_mcp import stdio

    with state.open_store("batch") as runtime:
        stdio.run(runtime, workspace, peer)
