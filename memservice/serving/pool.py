"""A pool of forked processes that all do the same. Nothing is opened before the fork: each child
opens for itself what it needs."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType

from msgspec import Struct

from memservice.domain.errors import ConfigurationError, MemserviceError
from memservice.serving.children import RestartPause, when_parent_ends

log = logging.getLogger("memservice.worker")

LOOK_SECONDS = 0.1
CANNOT_START = os.EX_CONFIG
"""Exit status of a child that no replacement would do better than."""


class _Child(Struct):
    pid: int
    started: float


class Pool:
    """Runs `work(stop)` in each of `number` processes, and in a new one for each that dies.

    The first SIGTERM or SIGINT sets every `stop`; the pool ends when all have drained. The second
    one ends the children at once. If the pool's own process is killed, the children drain. With
    `once`, only children that were killed are replaced.
    """

    def __init__(
        self,
        number: int,
        work: Callable[[threading.Event], None],
        *,
        once: bool = False,
        with_parent: bool = False,
    ) -> None:
        self._number = number
        self._work = work
        self._once = once
        self._parent = os.getppid() if with_parent else None
        self._stop_signals = 0
        self._children: list[_Child] = []
        self._pause = RestartPause()
        self._due = 0.0
        self._status = 0
        self._worst = 0
        """The worst exit status of those that are not replaced."""

    def run(self) -> int:
        """Returns the exit status: 0 after draining, 1 where the work cannot even begin, 143 after
        a second signal; with `once`, that of the child that fared worst."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)
        sent_signals = 0
        left = self._number
        while self._children or (left and not self._stop_signals and not self._status):
            if left and not self._stop_signals and time.monotonic() >= self._due:
                self._children.append(_Child(self._fork(), time.monotonic()))
                left -= 1
            left += self._reap()
            if self._parent is not None and os.getppid() != self._parent and not self._stop_signals:
                self._stop_signals = 1
            if self._status and not self._stop_signals:
                self._stop_signals = 1
            if self._stop_signals > sent_signals:
                sent_signals = self._stop_signals
                self._signal(signal.SIGTERM)
            time.sleep(LOOK_SECONDS)
        return self._status or (128 + signal.SIGTERM if self._stop_signals > 1 else self._worst)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self._stop_signals += 1

    def _signal(self, number: signal.Signals) -> None:
        for child in self._children:
            # it is ours and not waited for yet, so the pid is still its own
            os.kill(child.pid, number)

    def _reap(self) -> int:
        """Collect the children that ended; returns how many are to be replaced."""
        replaced = 0
        for child in list(self._children):
            pid, waited = os.waitpid(child.pid, os.WNOHANG)
            if pid == 0:
                continue
            self._children.remove(child)
            status = os.waitstatus_to_exitcode(waited)
            if status == CANNOT_START:
                self._status = 1
            elif self._once and status >= 0:
                self._worst = max(self._worst, status)
            elif not self._stop_signals:
                now = time.monotonic()
                pause = self._pause.after(now - child.started)
                self._due = now + pause
                log.error(
                    "a worker process ended with status %s; starting another in %.1f s",
                    status,
                    pause,
                )
                replaced += 1
        return replaced

    def _fork(self) -> int:
        sys.stdout.flush()
        sys.stderr.flush()
        # Blocked until the child listens: what is sent to it before would otherwise be heard by the
        # pool's own handler, in the child.
        blocked = {signal.SIGTERM, signal.SIGINT}
        signal.pthread_sigmask(signal.SIG_BLOCK, blocked)
        pid = os.fork()
        if pid == 0:
            os._exit(self._in_child(blocked))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, blocked)
        return pid

    def _in_child(self, blocked: set[signal.Signals]) -> int:
        stop = threading.Event()

        def on_signal(number: int, frame: FrameType | None) -> None:
            if stop.is_set():
                os._exit(128 + number)
            stop.set()

        try:
            os.setpgrp()  # a Ctrl-C in the terminal is for the pool, which passes it on
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, on_signal)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, blocked)
            when_parent_ends(lambda: _drain(stop))
            self._work(stop)
        except ConfigurationError as error:
            print(f"memservice: {error}", file=sys.stderr, flush=True)
            return CANNOT_START
        except MemserviceError as error:
            print(f"memservice: {error}", file=sys.stderr, flush=True)
            return 1
        except BaseException:
            log.exception("a worker process failed")
            return 1
        return 0


def _drain(stop: threading.Event) -> None:
    if not stop.is_set():
        os.kill(os.getpid(), signal.SIGTERM)
