"""`memservice worker`: background work in a process of its own."""

from __future__ import annotations

import os
import signal
import threading

import click

from memservice.cli.options import State
from memservice.domain.errors import ConfigurationError
from memservice.runtime import Runtime
from memservice.serving.logs import set_up_logging
from memservice.serving.schema import wait_for_schema
from memservice.spi.capabilities import Capability


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
        if wait_for_schema(runtime, stop):
            Worker(runtime, jitter=not embedded).run(stop)
    finally:
        runtime.close()


def _stop_with_parent(stop: threading.Event) -> None:
    parent = os.getppid()

    def watch() -> None:
        while not stop.wait(1.0):
            if os.getppid() != parent:
                stop.set()

    threading.Thread(target=watch, name="watch-parent", daemon=True).start()
