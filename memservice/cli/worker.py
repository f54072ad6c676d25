"""`memservice worker`: background work in separate processes."""

from __future__ import annotations

import gc
import logging
import math
import os
import signal
import sys
import threading
from collections.abc import Sequence
from types import FrameType

import click

import memservice
from memservice.cli.options import State
from memservice.compose import open_runtime
from memservice.domain.errors import ConfigurationError
from memservice.serving.children import when_parent_ends
from memservice.serving.logs import set_up_logging
from memservice.serving.metrics import shared_values_here
from memservice.spi.capabilities import Capability
from memservice.worker.schema import wait_for_schema

log = logging.getLogger("memservice.worker")


@click.command()
@click.option(
    "--queues",
    "queues",
    help=(
        "Only these queues, separated by commas, most urgent first (needs REDIS_URL; default: all)."
    ),
)
@click.option(
    "--num-workers",
    "number",
    type=click.IntRange(1, 256),
    help=(
        "Number of concurrent work units: processes with REDIS_URL, else threads (default: "
        "DERIVER_WORKERS, or WORKER_REMOTE_UNITS for a reasoner that waits on a network)."
    ),
)
@click.option("--burst", is_flag=True, help="Process pending work and exit.")
@click.option(
    "--embedded",
    is_flag=True,
    hidden=True,
    help="Used by `memservice serve`: start without jitter, and end with the parent process.",
)
@click.pass_obj
def worker(
    state: State, queues: str | None, number: int | None, burst: bool, embedded: bool
) -> None:
    """Run background work: conclusions, summaries and all other tasks. Any number of workers can
    share one store.

    With REDIS_URL these are RQ workers, which get their work from Redis. Without it, the worker
    polls the store.
    """
    from memservice.worker.housekeeping import units_at_once

    set_up_logging(state.settings)
    provider = state.plugins.storage(state.settings.db.connection_uri)
    if Capability.SHARED not in provider.capabilities:
        raise ConfigurationError(
            f"The storage {provider.name!r} exists in one process only, so a worker cannot "
            "share it."
        )
    if not embedded:  # else `memservice serve` has printed them
        for note in state.settings.notes:
            click.echo(f"WARNING     {note}", err=True)
    concurrency = number or units_at_once(state.settings, state.plugins)
    with shared_values_here(state.settings):
        if state.settings.app.redis_url:
            sys.exit(_run_rq(state, _queues(queues), concurrency, burst=burst, embedded=embedded))
        if queues is not None:
            raise click.UsageError(
                "--queues needs RQ: set REDIS_URL, or omit the option to process all work."
            )
        _poll(state, concurrency, burst=burst, embedded=embedded)


def _queues(queues: str | None) -> Sequence[str]:
    from memservice.worker.rq_queues import QUEUES

    if queues is None:
        return QUEUES
    names = list(dict.fromkeys(name.strip() for name in queues.split(",") if name.strip()))
    unknown = [name for name in names if name not in QUEUES]
    if unknown or not names:
        problem = f"there is no queue {unknown[0]!r}" if unknown else "name at least one"
        raise click.BadParameter(
            f"{problem}; the queues are {', '.join(QUEUES)}", param_hint="--queues"
        )
    return names


def _run_rq(state: State, names: Sequence[str], number: int, *, burst: bool, embedded: bool) -> int:
    from memservice.domain import tokens
    from memservice.serving.pool import Pool
    from memservice.worker import heartbeats, rq_worker
    from memservice.worker.rq_queues import JobQueues

    settings = state.settings
    JobQueues.of(settings)  # reports an invalid URL before forking
    rq_worker.hide_outages()
    tokens.count("")  # loads constant tables, whose memory the processes share

    def work(stop: threading.Event) -> None:
        runtime = open_runtime(settings, "worker", plugins=state.plugins, stop=stop)
        try:
            if not wait_for_schema(runtime, stop):
                return
            gc.freeze()  # as in `_poll`
            process = rq_worker.RqProcess(runtime, names, stop)
            if burst:
                process.run_until_idle()
            else:
                with heartbeats.registered(runtime, queues=names):
                    process.run()
        finally:
            runtime.close()

    if not embedded:
        log.info(
            "memservice %s: %d RQ worker(s) on %s",
            memservice.__version__,
            number,
            ", ".join(names),
        )
    return Pool(number, work, once=burst, with_parent=embedded).run()


def _poll(state: State, concurrency: int, *, burst: bool, embedded: bool) -> None:
    from memservice.worker import heartbeats
    from memservice.worker.polling import Worker

    stop = threading.Event()

    def on_signal(number: int, frame: FrameType | None) -> None:
        if stop.is_set():
            # unfinished work was not stored: another worker repeats it
            os._exit(128 + number)
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, on_signal)
    if embedded:
        when_parent_ends(stop.set)
    runtime = open_runtime(state.settings, "worker", plugins=state.plugins, stop=stop)
    try:
        if wait_for_schema(runtime, stop):
            # What was created until now stays. To examine it again takes 65 ms, while a transaction
            # is open.
            gc.freeze()
            polling = Worker(runtime, jitter=not embedded, at_once=concurrency)
            if burst:
                polling.housekeeping.run_due()
                polling.run_until_idle(math.inf, stop)
            else:
                with heartbeats.registered(runtime):
                    polling.run(stop)
    finally:
        runtime.close()
