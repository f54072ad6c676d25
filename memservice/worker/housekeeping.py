"""What every worker sees to beside its work: claims of processes that have ended, what is over, and
vectors that are amiss."""

from __future__ import annotations

import logging
import time

from memservice.pipeline.indexing import reconcile
from memservice.plugins import Plugins
from memservice.reasoning import choice
from memservice.runtime import Runtime
from memservice.settings import Settings
from memservice.spi.capabilities import Capability
from memservice.worker import retention

log = logging.getLogger("memservice.worker")


class Housekeeping:
    def __init__(self, rt: Runtime) -> None:
        self._rt = rt
        self._freed = self._swept = float("-inf")
        self._compare_at = 0.0

    def run_due(self) -> None:
        """Do what is due; called as often as the worker looks for work. Raises `Unavailable` if the
        store is away."""
        now = time.monotonic()
        if now - self._freed >= self._rt.settings.deriver.stale_work_unit_cleanup_interval_seconds:
            self._freed = now
            freed = retention.free_abandoned(self._rt)
            if freed:
                log.warning("took over %d lease(s) of processes that have ended", freed)
        if now - self._swept >= retention.INTERVAL_SECONDS:
            # also if it fails, so that other work goes on until the next interval
            self._swept = now
            if retention.sweep(self._rt).unfinished:
                self._swept = float("-inf")  # it continues at the next look, after other work
        if now >= self._compare_at:
            self._compare_at = now + reconcile.look(self._rt)

    def free_leases_soon(self) -> None:
        """Look at claims the next time, however soon that is: some could not be given back."""
        self._freed = float("-inf")


def units_at_once(settings: Settings, plugins: Plugins) -> int:
    """How many units one worker works on at once: more, if a reasoner of background work waits on a
    network. Opens nothing."""
    chosen = choice.choose(settings, plugins)
    names = {chosen[task] for task in (choice.DERIVE, choice.SUMMARIZE, choice.CONSOLIDATE)}
    remote = any(
        name == choice.LLM or Capability.REMOTE in plugins.reasoner(name).capabilities
        for name in names
    )
    return max(settings.deriver.workers, settings.worker.remote_units if remote else 1)
