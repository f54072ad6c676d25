"""The one kind of job that there is in Redis. It says which unit is to be looked at, and there is
nothing else that it could say.

RQ's own job names a function, callbacks, webhooks, dependents, retries and a timeout, and RQ's
worker does as it says. That is power over the worker for every program that can write to Redis. Of
our jobs only the unit is read: all else that is stored with one is not looked at, nor will be what
a later release of RQ stores with its jobs.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Mapping
from typing import Any

from rq.job import Job

FUNCTION = "memservice.pipeline.rq_worker.work"
"""What a job of ours names as its function. It is compared, never imported."""
DATA_MAX = 100_000
"""Longest description of a call that is read, in bytes and unpacked. Ours have fewer than 200."""


class UnitJob(Job):
    """A job as it is read from Redis: its id and its unit."""

    unit: str | None = None
    """None: the job is none of ours."""

    def restore(self, raw_data: Mapping[bytes, bytes]) -> None:
        self.unit = unit_of(raw_data.get(b"data", b""))
        # RQ lists only those jobs of a queue that name it as the place that they come from.
        self.origin = raw_data.get(b"origin", b"").decode(errors="replace")

    @property
    def func(self) -> Callable[..., Any]:
        raise RuntimeError(
            "a job in Redis names a function, and none of them is called: `memservice "
            "worker` reads its unit"
        )


def unit_of(data: bytes) -> str | None:
    """The unit in the description of a call, if that is a call of our function with a unit and with
    nothing else. None otherwise."""
    try:
        unpacking = zlib.decompressobj()
        unpacked = unpacking.decompress(data, DATA_MAX)
        if unpacking.unconsumed_tail:
            return None
        function, instance, given, named = json.loads(unpacked)
    except (zlib.error, ValueError, TypeError, RecursionError):
        return None
    if (
        function != FUNCTION
        or instance is not None
        or named != {}
        or not isinstance(given, list)
        or len(given) != 1
    ):
        return None
    return given[0] if isinstance(given[0], str) else None
