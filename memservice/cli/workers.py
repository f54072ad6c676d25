"""`memservice workers`: the processes of this installation, on all machines."""

from __future__ import annotations

import json
from typing import Any

import click

from memservice.cli.operator import OPERATOR
from memservice.cli.options import State, json_lines
from memservice.cli.stores import opened
from memservice.cli.tables import show_table
from memservice.domain.times import wire_seconds
from memservice.operations import instance
from memservice.operations.instance import Instance, Running
from memservice.worker import heartbeats


@click.command()
@json_lines
@click.pass_obj
def workers(state: State, as_json: bool) -> None:
    """List the servers and workers that are alive: where they run, their release, and the work
    units in progress.

    A process that ends without a signal is listed for another minute.
    """
    with opened(state) as rt:
        rt.storage.check()
        installation = instance.look(rt, OPERATOR)
    if as_json:
        for running in installation.processes:
            click.echo(json.dumps(_fields(running), ensure_ascii=False))
    else:
        show_table(
            ("KIND", "HOST", "PID", "VERSION", "QUEUES", "STARTED AT", "LAST SEEN", "UNITS"),
            [_row(running) for running in installation.processes],
        )
    _warn(installation)


def _warn(installation: Instance) -> None:
    if not any(running.process.kind == heartbeats.WORKER for running in installation.processes):
        click.echo("no worker is alive: start `memservice worker`", err=True)
    if installation.is_mixed:
        click.echo(
            f"several releases use this store: {', '.join(installation.versions)}; restart the "
            "older processes",
            err=True,
        )
    if installation.queues_without_worker:
        click.echo(
            f"no worker takes work from: {', '.join(installation.queues_without_worker)}", err=True
        )


def _row(running: Running) -> tuple[str, ...]:
    fields = _fields(running)
    return (
        fields["kind"],
        fields["host"],
        fields["pid"] or "-",
        fields["version"] or "-",
        ", ".join(fields["queues"]) or "-",
        fields["started_at"] or "-",
        fields["last_seen"],
        ", ".join(fields["units"]) or "-",
    )


def _fields(running: Running) -> dict[str, Any]:
    process = running.process
    return {
        "kind": process.kind,
        "host": process.host,
        "pid": process.pid,
        "version": process.version,
        "queues": list(process.queues),
        "started_at": None if process.started_at is None else wire_seconds(process.started_at),
        "last_seen": wire_seconds(process.last_heartbeat),
        "units": list(running.units),
    }
