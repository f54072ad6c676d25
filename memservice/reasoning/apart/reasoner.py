"""Runs a reasoner that only computes in separate processes: an input that never completes blocks
neither the heartbeats of this process, nor its other work, nor its shutdown. A request that exceeds
its time limit is an error of its task.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol, TypeVar

from msgspec.structs import replace

from memservice.compute_lock import released
from memservice.reasoning.apart import child
from memservice.reasoning.apart.wire import HEAD, decoded, encoded
from memservice.spi.capabilities import Capability
from memservice.spi.providers import ReasonerProvider
from memservice.spi.reasoner import (
    Answered,
    AnswerRequest,
    Consolidated,
    ConsolidateRequest,
    Derived,
    DeriveRequest,
    Reasoner,
    Summarized,
    SummarizeRequest,
)
from memservice.spi.waiting import about_to_wait

T = TypeVar("T")

BYTES_PER_SECOND = 20_000
"""Bytes of a request for which its time limit grows by one second. Ordinary text takes a sixth of
that."""
MAX_SECONDS = 120
WALL_FACTOR = 30
"""Limit of the elapsed time as a multiple of the CPU seconds, for a process that gets no CPU time
or waits."""
LAST_SECONDS = 5.0
"""Further time for the current request when this process shuts down."""
LOOK_SECONDS = 0.1
IDLE_SECONDS = 60.0
"""A second process, and each further one, ends after this idle time."""
CHUNK = 1 << 16

_PASSED_ON = (
    "PATH",
    "LANG",
    "LC_ALL",
    "TMPDIR",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
)
"""Environment variables that a reasoner gets. The secrets in the environment of this process are
not among them."""


class TookTooLong(Exception):
    """A request exceeded the time limit for its size."""


class ProcessEnded(Exception):
    """The process of the reasoner ended, or was killed, before its response."""


class Stopped(Exception):
    """This process shuts down, and the current request did not complete in time. Another process
    repeats it: the task has not failed."""


class Stop(Protocol):
    def is_set(self) -> bool: ...


def location_of(provider: ReasonerProvider) -> str | None:
    """The function that opens the reasoner in another process, as `module:name`. None for a
    reasoner that must run in this process: it does more than compute, has settings, or cannot be
    imported by name."""
    opens = provider.open
    module, name = getattr(opens, "__module__", ""), getattr(opens, "__qualname__", "")
    attribute = getattr(sys.modules.get(module), name, None)
    computes = Capability.COMPUTES in provider.capabilities and provider.settings is None
    return f"{module}:{name}" if computes and attribute is opens and module != "__main__" else None


class Apart:
    """`memservice.spi.reasoner.Reasoner`. Processes start on demand, one for each concurrent
    call."""

    def __init__(
        self,
        provider: ReasonerProvider,
        location: str,
        seconds: float,
        stop: Stop,
        here: Callable[[], Reasoner],
    ) -> None:
        """`location`: from `location_of`; `seconds`: minimum limit of CPU time for a request;
        `here` opens the reasoner in this process, for answers."""
        self.name = provider.name
        self.capabilities = provider.capabilities
        self._location, self._seconds, self._stop, self._here = location, seconds, stop, here
        self._lock = threading.Lock()
        self._idle: list[_Child] = []
        """The most recently used one is last."""
        self._closed = False

    def derive(self, request: DeriveRequest) -> Derived:
        return self._ask("derive", request, Derived)

    def summarize(self, request: SummarizeRequest) -> Summarized:
        return self._ask("summarize", request, Summarized)

    def consolidate(self, request: ConsolidateRequest) -> Consolidated:
        # Look-ups need the store, which a reasoner that only computes does not use.
        return self._ask("consolidate", replace(request, tools=None), Consolidated)

    def answer(self, request: AnswerRequest) -> Iterator[str | Answered]:
        return self._here().answer(request)

    def close(self) -> None:
        """End the processes; busy ones end after their current request."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for one in idle:
            one.end()

    def _ask(self, call: str, request: Any, result: type[T]) -> T:
        if self._stop.is_set():
            raise Stopped
        body = json.dumps(encoded(request)).encode()
        seconds = int(
            min(self._seconds + len(body) / BYTES_PER_SECOND, max(self._seconds, MAX_SECONDS))
        )
        frame = (
            json.dumps({"call": call, "seconds": max(1, seconds)}).encode()[:-1]
            + b', "request": '
            + body
            + b"}"
        )
        about_to_wait()
        one = self._take()
        answer: dict[str, Any] | None = None
        try:
            with released():
                answer = one.ask(frame, max(1, seconds), self._stop)
        finally:
            if answer is None:
                one.kill()
            else:
                self._give_back(one)
        if "result" in answer:
            return decoded(result, answer["result"])
        raise type(answer["error"], (Exception,), {})(answer["message"])

    def _take(self) -> _Child:
        with self._lock:
            while self._idle:
                one = self._idle.pop()
                if one.is_there():
                    return one
                one.kill()
        return _Child(self._location)

    def _give_back(self, one: _Child) -> None:
        one.used = time.monotonic()
        with self._lock:
            if not self._closed:
                self._idle.append(one)
            over = [other for other in self._idle[:-1] if one.used - other.used > IDLE_SECONDS]
            self._idle = [other for other in self._idle if other not in over]
            over += [one] if self._closed else []
        for other in over:
            other.end()


def _started(command: Sequence[str], environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    # A separate session: only this process gets a Ctrl-C of the terminal.
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
        start_new_session=True,
        bufsize=0,
    )


class _Child:
    """One process with its pipes. One thread at a time uses it."""

    def __init__(self, location: str) -> None:
        environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
        command = [sys.executable, "-P", "-m", child.__name__, location]
        self._process = _started(command, environment)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._to, self._from = self._process.stdin.fileno(), self._process.stdout.fileno()
        os.set_blocking(self._to, False)
        os.set_blocking(self._from, False)
        self.used = time.monotonic()

    @property
    def pid(self) -> int:
        return self._process.pid

    def is_there(self) -> bool:
        return self._process.poll() is None

    def ask(self, body: bytes, seconds: int, stop: Stop) -> dict[str, Any]:
        """Raises `TookTooLong`, `ProcessEnded`, or `Stopped`; then the process is unusable."""
        ends = time.monotonic() + seconds * WALL_FACTOR
        last: float | None = None
        unsent = memoryview(HEAD.pack(len(body)) + body)
        got = bytearray()
        while True:
            readable, writable, _ = select.select(
                [self._from], [self._to] if unsent else [], [], LOOK_SECONDS
            )
            if writable:
                try:
                    unsent = unsent[os.write(self._to, unsent[:CHUNK]) :]
                except BlockingIOError:
                    pass
                except BrokenPipeError:
                    raise self._ended(seconds) from None
            if readable:
                piece = os.read(self._from, CHUNK)
                if not piece:
                    raise self._ended(seconds)
                got += piece
                if len(got) >= HEAD.size and len(got) - HEAD.size >= HEAD.unpack_from(got)[0]:
                    answer: dict[str, Any] = json.loads(got[HEAD.size :])
                    return answer
                continue
            now = time.monotonic()
            if last is None and stop.is_set():
                last = now + LAST_SECONDS
            if last is not None and now > last:
                raise Stopped
            if now > ends:
                raise TookTooLong(f"it gave no answer within {seconds * WALL_FACTOR} s")

    def end(self) -> None:
        """End an idle process, by closing its input."""
        self._close()
        try:
            self._process.wait(1)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            self._process.kill()
        self._process.wait()
        self._close()

    def _close(self) -> None:
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()

    def _ended(self, seconds: int) -> Exception:
        status = self._process.wait()
        if status == -signal.SIGXCPU:
            return TookTooLong(
                f"it took more than the {seconds} s of CPU time that a request of its size may take"
            )
        return ProcessEnded(f"the process of the reasoner ended with status {status}")
