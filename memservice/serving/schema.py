"""Processes that never migrate wait until another one has."""

from __future__ import annotations

import logging
import threading

from memservice.domain.errors import SchemaVersionError, Unavailable
from memservice.runtime import Runtime
from memservice.services import store_compatibility

log = logging.getLogger("memservice.start")

FIRST_PAUSE, MAX_PAUSE = 0.02, 0.5
TOLD_AFTER = 1.0
"""Seconds of waiting before it is worth a line in the log."""


def wait_for_schema(runtime: Runtime, stop: threading.Event) -> bool:
    """Wait until the store's schema is this release's. False if told to stop before. Raises
    `ConfigurationError` for a store whose counts or index are not."""
    told, pause, waited = "", FIRST_PAUSE, 0.0
    while not stop.is_set():
        try:
            runtime.storage.check()
            store_compatibility.check(runtime)
            return True
        except (SchemaVersionError, Unavailable) as error:
            if waited >= TOLD_AFTER and str(error) != told:
                told = str(error)
                log.warning("waiting for the store: %s", told)
            stop.wait(pause)
            waited += pause
            pause = min(pause * 2, MAX_PAUSE)
    return False
