"""`memservice bench`: measures how well a server answers questions about conversations."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from memservice.hookspecs import hookimpl

if TYPE_CHECKING:
    import click


@hookimpl
def memservice_cli_commands() -> Iterable[click.Command]:
    """`memservice bench run|compare|judge-test`."""
    from memservice_bench.command import bench

    yield bench
