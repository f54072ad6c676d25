"""Sending events to the collector: in batches, by one thread, which the first event starts.

Emitting costs a place in a bounded buffer and nothing else. A collector that is slow or gone holds
up nobody: what does not fit is dropped, the oldest first, and counted.
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
from memservice.telemetry.sender import TIMEOUT_SECONDS, NotTaken, Refused, Sender

log = logging.getLogger("memservice.telemetry")

MICROSECOND = timedelta(microseconds=1)
LAST_WORDS_SECONDS = 5.0
"""How long the end of a process may be held up by what still waits."""


class Exporter:
    """A listener of events. Made in the process that uses it, after forking; close it once."""

    def __init__(
        self, settings: Telemetry, namespace: str | None, meter: Meter, reason_prefix: str = ""
    ) -> None:
        """`namespace` names the installation in the events' source; `reason_prefix` goes before the
        reasons of what is lost."""
        self._settings = settings
        self._namespace = namespace
        self._meter = meter
        self._prefix = reason_prefix
        self._buffer: RingBuffer[Envelope] = RingBuffer(settings.max_buffer_size, self._lost)
        self._sender = Sender(
            settings.endpoint or "", {name: str(value) for name, value in settings.headers.items()}
        )
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._deadline = float("inf")
        self._complained = False
        self._tries = max(1, settings.max_retries)
        self._last: datetime | None = None
        self._in_hand = 0
        """Events that were taken from the buffer, and of which nothing is known yet."""

    def __call__(self, event: Event, at: datetime) -> None:
        made = envelope(event, self._moment(at), self._namespace, memservice.__version__)
        if event.HIGH_VOLUME and not is_sampled(
            event.sampling_key or made["id"], self._settings.high_volume_sample_rate
        ):
            self._meter.sampled_out(event.TYPE)
            return
        self._meter.emitted(event.TYPE)
        self._buffer.add(made)
        self._meter.waiting(len(self._buffer))
        if self._thread is None:
            self._start()

    def _moment(self, at: datetime) -> datetime:
        """A time that no other event has: ids are made of it."""
        with self._lock:
            self._last = at if self._last is None or at > self._last else self._last + MICROSECOND
            return self._last

    def close(self, seconds: float = LAST_WORDS_SECONDS) -> None:
        """Send what waits, within `seconds`; what is left then is dropped."""
        self._deadline = time.monotonic() + seconds
        self._stop.set()
        self._buffer.close()
        if self._thread is not None:
            self._thread.join(seconds)
        left = len(self._buffer.take(len(self._buffer))) + self._in_hand
        if left:
            self._lost(left, True)
            log.warning("%d event(s) were not delivered before the end", left)
        self._meter.waiting(0)

    def _start(self) -> None:
        with self._lock:
            if self._thread is None and not self._stop.is_set():
                self._thread = threading.Thread(target=self._run, name="telemetry", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        settings = self._settings
        # Waiting for the threshold makes no sense where the buffer is smaller.
        threshold = min(settings.flush_threshold, settings.max_buffer_size)
        going_on = True
        while going_on:
            going_on = self._buffer.wait(threshold, settings.flush_interval_seconds)
            while batch := self._buffer.take(settings.batch_size):
                self._in_hand = len(batch)
                delivered = self._deliver(batch)
                self._in_hand = 0
                self._meter.waiting(len(self._buffer))
                if not delivered:
                    self._stop.wait(2.0 ** (self._tries - 1))
                    break
        self._sender.close()

    def _deliver(self, batch: Sequence[Envelope]) -> bool:
        """False if the collector does not take anything at present; the batch waits again then."""
        try:
            self._send(batch)
        except NotTaken as error:
            self._complain(error)
            self._buffer.give_back(batch)
            return False
        except Refused as error:
            if len(batch) > 1:
                # Maybe one of them is to blame, maybe their number.
                half = len(batch) // 2
                if self._deliver(batch[:half]):
                    return self._deliver(batch[half:])
                # the first half was given back by the call, and the order does not matter
                self._buffer.give_back(batch[half:])
                return False
            self._complain(error)
            self._lost(1, True)
        else:
            if self._complained:
                log.info("the collector takes events again")
            self._complained = False
        return True

    def _send(self, batch: Sequence[Envelope]) -> None:
        """With its tries and pauses; at the end of the process one try each."""
        for attempt in range(self._tries):
            left = self._deadline - time.monotonic()
            if left <= 0:
                raise NotTaken("the process ends")
            try:
                self._sender.send(batch, min(TIMEOUT_SECONDS, left))
                return
            except NotTaken:
                if attempt + 1 >= self._tries or self._stop.is_set():
                    raise
                self._stop.wait(2.0**attempt)

    def _complain(self, error: Exception) -> None:
        """Once, until it works again."""
        if not self._complained:
            self._complained = True
            log.warning("events are not delivered: %s", error)

    def _lost(self, number: int, failed: bool) -> None:
        self._meter.dropped(self._prefix + (SEND_FAILED if failed else BUFFER_FULL), number)
