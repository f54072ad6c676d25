"""`memservice worker`: background work in a process of its own."""

from __future__ import annotations

import logging
import os
import signal
import threading

import click

from memservice.cli.options import State
from memservice.domain.errors import ConfigurationError, SchemaVersionError, Unavailable
from memservice.runtime import Runtime
from memservice.serving.logs import set_up_logging
from memservice.spi.capabilities import Capability

log = logging.getLogger("memservice.worker")

WAIT_SECONDS = 0.5


@click.command()
@click.option("--embedded", is_flag=True, hidden=True, help="Started by `memservice serve`: no jitter, and ends with its parent.")
@click.pass_obj
def worker(state: State, embedded: bool) -> None:
    """Work on what the servers leave to be done: conclusions, summaries, and the rest. Any number may run on one store."""
    from memservice.pipeline.worker import Worker

    set_up_logging(state.settings)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    if embedded:
        _stop_with_parent(stop)
    runtime = Runtime(state.settings, state.plugins)
    if Capability.SHARED not in runtime.storage.capabilities:
        raise ConfigurationError(f"The storage {runtime.storage.name!r} lives inside one process, so no worker can share it.")
    try:
        if _wait_for_schema(runtime, stop):
            Worker(runtime, jitter=not embedded).run(stop)
    finally:
        runtime.close()


def _wait_for_schema(runtime: Runtime, stop: threading.Event) -> bool:
    """A worker never migrates: it waits until the schema is this release's. False if it was told to stop before."""
    told = ""
    while not stop.is_set():
        try:
            runtime.storage.check()
            return True
        except (SchemaVersionError, Unavailable) as error:
            if str(error) != told:
                told = str(error)
                log.warning("waiting for the store: %s", told)
            stop.wait(WAIT_SECONDS)
    return False


def _stop_with_parent(stop: threading.Event) -> None:
    parent = os.getppid()

    def watch() -> None:
        while not stop.wait(1.0):
            if os.getppid() != parent:
                stop.set()

    threading.Thread(target=watch, name="watch-parent", daemon=True).start()
