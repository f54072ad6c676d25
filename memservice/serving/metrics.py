"""The shared directory of metric values for all processes of one server or worker, so that each can
expose the metrics of all."""

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
    """Environment variables to add for these processes before they start; none if metrics are
    disabled. The values are deleted at the end."""
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
    """Like `shared_values`, for processes that are forked from this one."""
    previous = os.environ.pop(DIRECTORY, None)
    try:
        with shared_values(settings) as values:
            os.environ.update(values)
            yield
    finally:
        os.environ.pop(DIRECTORY, None)
        if previous is not None:
            os.environ[DIRECTORY] = previous
