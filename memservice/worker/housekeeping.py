"""Periodic housekeeping of every worker: abandoned leases, stale outages of models, retention, the
check of vectors, and the retention that workspaces are configured with."""

from __future__ import annotations

import logging
import threading
import time
from contextlib import suppress

from memservice.domain.errors import MemserviceError
from memservice.pipeline.indexing import reconcile
from memservice.plugins import Plugins
from memservice.reasoning import choice
from memservice.runtime import Runtime
from memservice.services import release_feed
from memservice.services.tasks import model_breaker
from memservice.settings import Settings
from memservice.spi.capabilities import Capability
from memservice.worker import expiry, retention

log = logging.getLogger("memservice.worker")

SCHEMA_SECONDS = 5.0
"""How often a worker checks that no newer release has migrated the store, also without work."""
RELEASES_SECONDS = 600.0
"""How often a worker checks whether the release feed is due."""


class Housekeeping:
    def __init__(self, rt: Runtime) -> None:
        self._rt = rt
        self._leases_checked_at = self._swept_at = float("-inf")
        self._compare_at = self._expire_at = self._releases_at = self._check_at = 0.0
        self._releases: threading.Thread | None = None

    def run_due(self) -> None:
        """Do what is due. The worker calls this whenever it looks for work. Raises `Unavailable` if
        the store cannot be reached, and `SchemaVersionError` if another release has migrated it."""
        now = time.monotonic()
        if now >= self._check_at:
            self._rt.storage.check()
            self._check_at = now + SCHEMA_SECONDS
        if (
            now - self._leases_checked_at
            >= self._rt.settings.deriver.stale_work_unit_cleanup_interval_seconds
        ):
            self._leases_checked_at = now
            freed = retention.free_abandoned(self._rt)
            if freed:
                log.warning("took over %d lease(s) of processes that have ended", freed)
            model_breaker.end_stale(self._rt)
        if now - self._swept_at >= retention.INTERVAL_SECONDS:
            # Set before the sweep: if it fails, other work continues until the next interval.
            self._swept_at = now
            if retention.sweep(self._rt).unfinished:
                self._swept_at = float("-inf")  # continues at the next call, after other work
        if now >= self._compare_at:
            self._compare_at = now + reconcile.run(self._rt)
        if now >= self._expire_at:
            self._expire_at = now + expiry.run(self._rt)
        if now >= self._releases_at:
            self._releases_at = now + RELEASES_SECONDS
            self._read_releases()

    def _read_releases(self) -> None:
        """Start to read the release feed if that is due, in a thread of its own: a slow server must
        not delay other work."""
        if self._releases is not None and self._releases.is_alive():
            return
        if release_feed.is_due(self._rt):
            self._releases = threading.Thread(
                target=_refresh_releases, args=(self._rt,), name="releases", daemon=True
            )
            self._releases.start()

    def free_leases_soon(self) -> None:
        """Check leases at the next call, because some could not be released."""
        self._leases_checked_at = float("-inf")


def _refresh_releases(rt: Runtime) -> None:
    # A store that cannot be reached is reported by other work; the feed is read again later.
    with suppress(MemserviceError):
        release_feed.refresh(rt)


def units_at_once(settings: Settings, plugins: Plugins) -> int:
    """Number of units that one worker processes at the same time: more if a reasoner of background
    work waits for a network. Opens nothing."""
    reasoners = choice.choose(settings, plugins)
    names = {reasoners[task] for task in (choice.DERIVE, choice.SUMMARIZE, choice.CONSOLIDATE)}
    remote = any(
        name == choice.LLM or Capability.REMOTE in plugins.reasoner(name).capabilities
        for name in names
    )
    return max(settings.deriver.workers, settings.worker.remote_units if remote else 1)
