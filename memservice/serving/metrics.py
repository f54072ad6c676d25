"""Where the processes of one server, or of one worker, keep the values of their metrics, so that
each can tell those of all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from memservice.settings import Settings
from memservice.telemetry.metrics import DIRECTORY


@contextmanager
def shared_values(settings: Settings) -> Iterator[Mapping[str, str]]:
    """What to add to the environment of these processes before they start; nothing where metrics
    are off. The values go with the end."""
    if not settings.metrics.enabled:
        yield {}
        return
    directory = tempfile.mkdtemp(prefix="memservice-metrics-")
    try:
        yield {DIRECTORY: directory}
    finally:
        shutil.rmtree(directory, ignore_errors=True)


@contextmanager
def shared_values_here(settings: Settings) -> Iterator[None]:
    """As `shared_values`, for processes that are forked from this one."""
    before = os.environ.pop(DIRECTORY, None)
    try:
        with shared_values(settings) as given:
            os.environ.update(given)
            yield
    finally:
        os.environ.pop(DIRECTORY, None)
        if before is not None:
            os.environ[DIRECTORY] = before
