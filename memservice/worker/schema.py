"""Waiting for the schema: processes that never migrate wait until another one has. So does a worker
while the schema is that of a newer release."""

from __future__ import annotations

import logging
import threading

import memservice
from memservice.domain.errors import SchemaVersionError, Unavailable
from memservice.runtime import Runtime
from memservice.services import store_compatibility

log = logging.getLogger("memservice.start")

FIRST_PAUSE, MAX_PAUSE = 0.02, 0.5
LOG_AFTER = 1.0
"""Seconds of waiting before the first log message."""


def wait_for_schema(runtime: Runtime, stop: threading.Event) -> bool:
    """Wait until the store has this release's schema. False if `stop` is set before. Raises
    `ConfigurationError` if the store has another tokenizer or text analyser."""
    logged_message, pause, waited = "", FIRST_PAUSE, 0.0
    while not stop.is_set():
        try:
            runtime.storage.check()
            store_compatibility.check(runtime)
            return True
        except (SchemaVersionError, Unavailable) as error:
            if waited >= LOG_AFTER and str(error) != logged_message:
                logged_message = str(error)
                log.warning("waiting for the store: %s", logged_message)
            stop.wait(pause)
            waited += pause
            pause = min(pause * 2, MAX_PAUSE)
    return False


def wait_for_own_schema(runtime: Runtime, error: SchemaVersionError, stop: threading.Event) -> None:
    """Another release has migrated the store: log that this process stops working, and wait until
    the store has this release's schema again. Nothing is written meanwhile."""
    log.error(
        "this worker of release %s stops working: %s Work goes on in workers of that release",
        memservice.__version__,
        error,
    )
    if wait_for_schema(runtime, stop):
        log.warning("this worker works again: the store has the schema of its release")
