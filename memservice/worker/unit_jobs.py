"""The only kind of job in Redis. It names a unit.

A job of RQ names a function, callbacks, webhooks, dependents, retries and a timeout, and RQ's
worker obeys. So every program that can write to Redis controls the worker. This class reads the
unit and ignores all other fields of a job, including those that later releases of RQ may add.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Mapping
from typing import Any

from rq.job import Job

FUNCTION = "memservice.pipeline.rq_worker.work"
"""The function that our jobs name. It is compared, never imported."""
DATA_MAX = 100_000
"""Longest call data that is read, in bytes after decompression. Our jobs have fewer than 200."""


class UnitJob(Job):
    """A job as read from Redis: its id and its unit."""

    unit: str | None = None
    """None for a job that memservice did not enqueue."""

    def restore(self, raw_data: Mapping[bytes, bytes]) -> None:
        self.unit = unit_of(raw_data.get(b"data", b""))
        # RQ lists a job in a queue only if its origin is that queue.
        self.origin = raw_data.get(b"origin", b"").decode(errors="replace")

    @property
    def func(self) -> Callable[..., Any]:
        raise RuntimeError(
            "functions that jobs in Redis name are never called: `memservice worker` "
            "reads the unit only"
        )


def unit_of(data: bytes) -> str | None:
    """The unit in the call data of a job; None unless it calls our function with one unit and no
    other argument."""
    try:
        decompressor = zlib.decompressobj()
        text = decompressor.decompress(data, DATA_MAX)
        if decompressor.unconsumed_tail:
            return None
        function, instance, arguments, keywords = json.loads(text)
    except (zlib.error, ValueError, TypeError, RecursionError):
        return None
    if (
        function != FUNCTION
        or instance is not None
        or keywords != {}
        or not isinstance(arguments, list)
        or len(arguments) != 1
    ):
        return None
    return arguments[0] if isinstance(arguments[0], str) else None
