"""What one process reports of its work: model calls, events and finished tasks, each to its
listeners."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Protocol, TypeAlias

from memservice.domain.failures import redacted_traceback
from memservice.plugins import Plugins
from memservice.spi.llm import ModelCall
from memservice.telemetry.context import attributed
from memservice.telemetry.events import Event

log = logging.getLogger("memservice")

CallListener: TypeAlias = Callable[[ModelCall], None]
EventListener: TypeAlias = Callable[[Event, datetime], None]
"""Takes an event and the time at which it was emitted."""


class TaskListener(Protocol):
    """Counts tasks of background work."""

    def done(
        self, kind: str, workspace_key: int | None, number: int, outcome: Mapping[str, object]
    ) -> None:
        """So many tasks of this kind are done, with this outcome together."""

    def failed(self, kind: str, error: str, is_final: bool) -> None:
        """A task failed with an error of this class. `is_final`: it is not tried again."""


class Events:
    """Listeners run in the thread that reports. Their errors are logged and never reach it."""

    def __init__(self, plugins: Plugins, clock: Callable[[], datetime]) -> None:
        self._plugins = plugins
        self._clock = clock
        self._calls: list[CallListener] = []
        self._events: list[EventListener] = []
        self._tasks: list[TaskListener] = []

    def on_call(self, listener: CallListener) -> None:
        """Report each call of a model or an embedder to `listener`."""
        self._calls.append(listener)

    def on_event(self, listener: EventListener) -> None:
        self._events.append(listener)

    def on_tasks(self, listener: TaskListener) -> None:
        self._tasks.append(listener)

    @property
    def has_listeners(self) -> bool:
        """Whether a listener or a plugin takes events. If not, describing one can be skipped."""
        return bool(self._events) or self._plugins.hears_events

    def called(self, call: ModelCall) -> None:
        """Report one call of a model or an embedder."""
        call = attributed(call)
        for listener in self._calls:
            try:
                listener(call)
            except Exception as error:
                _log("a call of a model could not be noted", error)

    def emit(self, event: Event) -> None:
        """Report an event to operators and plugins. Call this once, after the commit, and never
        inside `storage.write`, which may run its function again."""
        if not self.has_listeners:
            return
        now = self._clock()
        for listener in self._events:
            try:
                listener(event, now)
            except Exception as error:
                _log(f"the event {event.TYPE} could not be noted", error)
        self._plugins.emit(event.TYPE, event.data)

    def worked(
        self, kind: str, workspace_key: int | None, number: int, outcome: Mapping[str, object]
    ) -> None:
        """Report tasks that are done and whose results are stored."""
        self._count(lambda listener: listener.done(kind, workspace_key, number, outcome))

    def failed(self, kind: str, error: Exception, is_final: bool) -> None:
        """Report a failed task. `is_final`: it is not tried again."""
        self._count(lambda listener: listener.failed(kind, type(error).__name__, is_final))

    def _count(self, report: Callable[[TaskListener], None]) -> None:
        for listener in self._tasks:
            try:
                report(listener)
            except Exception as error:
                _log("tasks could not be counted", error)


def _log(message: str, error: Exception) -> None:
    log.error("%s: %s\n%s", message, type(error).__name__, redacted_traceback(error))
