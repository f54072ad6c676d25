"""Keeps a lease while its work takes longer than the lease lasts."""

from __future__ import annotations

import logging
import threading

from memservice.domain.errors import MemserviceError
from memservice.domain.records import Lease
from memservice.runtime import Runtime

log = logging.getLogger("memservice.pipeline")


class LeaseHeartbeat:
    """Extends a lease from the process that does the work, until the work ends."""

    def __init__(self, rt: Runtime, lease: Lease, seconds: float) -> None:
        self._rt, self._lease, self._seconds = rt, lease, seconds
        self._ended = threading.Event()
        self._thread = threading.Thread(
            target=self._beat, name=f"heartbeat {lease.unit}", daemon=True
        )
        self._thread.start()

    def _beat(self) -> None:
        while not self._ended.wait(self._seconds / 3):
            try:
                if not self._rt.storage.write(
                    lambda tx: tx.tasks.renew(self._lease, self._rt.clock(), self._seconds)
                ):
                    return
            except MemserviceError as error:
                log.warning("could not extend the lease of %s: %s", self._lease.unit, error)

    def end(self) -> None:
        self._ended.set()
        self._thread.join()
