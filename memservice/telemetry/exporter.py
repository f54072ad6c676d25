"""Export of events to the collector, in batches, by one thread that the first event starts.

Emitting an event only adds it to a bounded buffer, so a slow or missing collector delays nothing.
If the buffer is full, the oldest events are dropped and counted.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from datetime import datetime, timedelta

import memservice
from memservice.settings.service import Telemetry
from memservice.telemetry.buffer import RingBuffer
from memservice.telemetry.cloudevents import Envelope, envelope, is_sampled
from memservice.telemetry.events import Event
from memservice.telemetry.meter import BUFFER_FULL, SEND_FAILED, Meter
from memservice.telemetry.sender import TIMEOUT_SECONDS, DeliveryFailed, EventsRejected, Sender

log = logging.getLogger("memservice.telemetry")

MICROSECOND = timedelta(microseconds=1)
CLOSE_TIMEOUT_SECONDS = 5.0
"""Maximum delay of a process's end by pending events."""


class Exporter:
    """A listener of events. Create it in the process that uses it, after forking; close it once."""

    def __init__(
        self, settings: Telemetry, namespace: str | None, meter: Meter, reason_prefix: str = ""
    ) -> None:
        """`namespace` names the installation in the events' source. `reason_prefix` is a prefix for
        the reasons of dropped events."""
        self._settings = settings
        self._namespace = namespace
        self._meter = meter
        self._prefix = reason_prefix
        self._buffer: RingBuffer[Envelope] = RingBuffer(
            settings.max_buffer_size, self._count_dropped
        )
        self._sender = Sender(
            settings.endpoint or "", {name: str(value) for name, value in settings.headers.items()}
        )
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._deadline = float("inf")
        self._failure_reported = False
        self._tries = max(1, settings.max_retries)
        self._last_time: datetime | None = None
        self._in_flight = 0
        """Events that were taken from the buffer and are being sent."""

    def __call__(self, event: Event, at: datetime) -> None:
        event_envelope = envelope(
            event, self._unique_time(at), self._namespace, memservice.__version__
        )
        if event.HIGH_VOLUME and not is_sampled(
            event.sampling_key or event_envelope["id"], self._settings.high_volume_sample_rate
        ):
            self._meter.sampled_out(event.TYPE)
            return
        self._meter.emitted(event.TYPE)
        self._buffer.add(event_envelope)
        self._meter.waiting(len(self._buffer))
        if self._thread is None:
            self._start()

    def _unique_time(self, at: datetime) -> datetime:
        """A time that no other event has, since it is part of the id."""
        with self._lock:
            self._last_time = (
                at
                if self._last_time is None or at > self._last_time
                else self._last_time + MICROSECOND
            )
            return self._last_time

    def close(self, seconds: float = CLOSE_TIMEOUT_SECONDS) -> None:
        """Send pending events within `seconds`; drop the others."""
        self._deadline = time.monotonic() + seconds
        self._stop.set()
        self._buffer.close()
        if self._thread is not None:
            self._thread.join(seconds)
        undelivered = len(self._buffer.take(len(self._buffer))) + self._in_flight
        if undelivered:
            self._count_dropped(undelivered, True)
            log.warning(
                "%d event(s) were not delivered before the exporter was closed", undelivered
            )
        self._meter.waiting(0)

    def _start(self) -> None:
        with self._lock:
            if self._thread is None and not self._stop.is_set():
                self._thread = threading.Thread(target=self._run, name="telemetry", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        settings = self._settings
        # The buffer may be smaller than the threshold.
        threshold = min(settings.flush_threshold, settings.max_buffer_size)
        is_open = True
        while is_open:
            is_open = self._buffer.wait(threshold, settings.flush_interval_seconds)
            while batch := self._buffer.take(settings.batch_size):
                self._in_flight = len(batch)
                delivered = self._deliver(batch)
                self._in_flight = 0
                self._meter.waiting(len(self._buffer))
                if not delivered:
                    self._stop.wait(2.0 ** (self._tries - 1))
                    break
        self._sender.close()

    def _deliver(self, batch: Sequence[Envelope]) -> bool:
        """Send a batch. False if the collector is not available: then the batch is in the buffer
        again."""
        try:
            self._send(batch)
        except DeliveryFailed as error:
            self._report_failure(error)
            self._buffer.give_back(batch)
            return False
        except EventsRejected as error:
            if len(batch) > 1:
                # The cause may be one of the events, or their number.
                half = len(batch) // 2
                if self._deliver(batch[:half]):
                    return self._deliver(batch[half:])
                # the call has given back the first half, and the order does not matter
                self._buffer.give_back(batch[half:])
                return False
            self._report_failure(error)
            self._count_dropped(1, True)
        else:
            if self._failure_reported:
                log.info("the collector accepts events again")
            self._failure_reported = False
        return True

    def _send(self, batch: Sequence[Envelope]) -> None:
        """Send a batch with retries; at the end of the process without."""
        for attempt in range(self._tries):
            seconds_left = self._deadline - time.monotonic()
            if seconds_left <= 0:
                raise DeliveryFailed("the process is ending")
            try:
                self._sender.send(batch, min(TIMEOUT_SECONDS, seconds_left))
                return
            except DeliveryFailed:
                if attempt + 1 >= self._tries or self._stop.is_set():
                    raise
                self._stop.wait(2.0**attempt)

    def _report_failure(self, error: Exception) -> None:
        """Log the first failure, until a delivery succeeds."""
        if not self._failure_reported:
            self._failure_reported = True
            log.warning("events are not delivered: %s", error)

    def _count_dropped(self, number: int, failed: bool) -> None:
        self._meter.dropped(self._prefix + (SEND_FAILED if failed else BUFFER_FULL), number)
