"""The threads of a server process. One of them leads: it takes turns of the loop that receives
requests, and answers those itself that do not wait for anything.

To hand a request to another thread costs as much as a cheap request itself, and threads that run at
the same time wait for Python's lock after each system call. A request that waits, or takes long,
gives the lead to another thread, and keeps its own. After it has waited for another program
(`compute_lock.released`), it resumes when no other request computes.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from enum import Enum, auto
from queue import SimpleQueue
from typing import NamedTuple

from memservice.compute_lock import compute_freely, compute_under
from memservice.serving.computing import Computing, Mailbox

log = logging.getLogger("memservice.server")

Job = Callable[[], None]

LEAD_SECONDS = 0.01
"""How long a job may keep the lead. One that takes longer computes or waits, and others should run
beside it. Also the interval at which a thread looks for such jobs."""
MAX_NEW = 2
"""Number of new jobs that run at the same time. Python runs one thread at a time: with more, all of
them take longer. The second one begins when the first has computed for `LEAD_SECONDS`."""
NEW_SECONDS = 0.05
"""How long a job is new. One that takes longer, or reports that it waits, does not count."""
TURN_SECONDS = 0.005
"""After this time the leader takes a turn, even if jobs are waiting: a new connection would wait
for all of them, and again for each one that is accepted before it."""
IDLE_SECONDS = 1.0
"""The thread that looks for long jobs sleeps once there was none for this time."""
LOG_SECONDS = 10.0
"""Minimum interval of log lines about threads that cannot be started."""


class _Next(Enum):
    """What a thread does if there is no job for it."""

    TURN = auto()
    IDLE = auto()
    END = auto()


class Threads:
    """Runs up to `number` jobs at the same time. They begin in the order in which they were
    submitted. There is one thread more, so that one leads whatever the others wait for."""

    def __init__(
        self, number: int, turn: Callable[[bool], None], failed: Callable[[], None]
    ) -> None:
        """`turn` waits until something happens, if its argument is true, and submits jobs. If it
        raises, the error is kept as `failure`, there are no more turns, and `failed` is called."""
        self._number = number
        self._turn = turn
        self._failed = failed
        self.failure: BaseException | None = None
        self._lock = threading.Lock()
        self._turning = threading.Lock()
        """Held during a turn."""
        self._started = self._busy = 0
        """Threads, and jobs in progress."""
        self._idle: list[Mailbox] = []
        """Of threads without a job that do not lead, which True lets lead or do the next job, and
        False end. The last one is used first."""
        self._leader: Mailbox | None = None
        self._jobs: deque[Job] = deque()
        self._since: deque[float] = deque()
        """When each of them was submitted (monotonic seconds)."""
        self._new: dict[Mailbox, float] = {}
        """The threads that do new jobs, and when each job began."""
        self._began = 0.0
        """When the leader's job began; 0.0: it has none."""
        self._computing = Computing()
        self._turned = 0.0
        """When the last turn ended."""
        self._next_log = 0.0
        self._is_ending = False
        self._asleep: SimpleQueue[None] | None = None
        """Wakes the thread that runs `_watch`; None: it is awake."""

    @property
    def waiting(self) -> int:
        """Number of jobs that no thread has taken yet."""
        return len(self._jobs)

    @property
    def is_loaded(self) -> bool:
        """Whether jobs wait for a thread, or one computes in another thread than the leader's. Call
        it in a turn."""
        with self._lock:
            return bool(self._jobs) or not self._computing.is_free

    @property
    def waited_seconds(self) -> float:
        """How long the first of these jobs has waited; 0 if there is none."""
        with self._lock:
            return time.monotonic() - self._since[0] if self._since else 0.0

    def start(self) -> None:
        threading.Thread(target=self._watch, name="request_watch", daemon=True).start()
        with self._lock:
            self._lead_elsewhere()
        if self._leader is None:
            raise RuntimeError("no thread can be started")

    def submit(self, job: Job) -> None:
        """Call it in a turn only: the leader takes the job after it."""
        with self._lock:
            self._jobs.append(job)
            self._since.append(time.monotonic())

    def shutdown(self, wake: Callable[[], None]) -> None:
        """Let the threads end after the jobs that were submitted. Returns when no turn is taken any
        more; `wake` ends one that waits. The interpreter waits for the threads at its exit."""
        with self._lock:
            self._is_ending = True
            for mailbox in self._idle:
                mailbox.put(False)
            self._idle.clear()
        wake()
        with self._turning:
            pass

    def _lead_elsewhere(self) -> None:
        """Let another thread lead, if there is one. The lock is held."""
        mailbox = self._thread()
        if mailbox is not None:
            self._began = 0.0
            self._leader = mailbox
            mailbox.put(True)

    def _help(self) -> None:
        """Let an idle thread, or a new one, do the next job, if the leader may be in a turn. The
        lock is held."""
        if self._can_begin and not self._began:
            mailbox = self._thread()
            if mailbox is not None:
                mailbox.put(True)

    def _thread(self) -> Mailbox | None:
        """An idle thread, or a new one. None if there are enough, of which one has just been woken,
        or if the system has no more threads for this process: `_watch` tries again."""
        if self._idle:
            return self._idle.pop()
        if self._started > self._number:
            return None
        mailbox: Mailbox = SimpleQueue()
        name = f"request_{self._started + 1}"
        try:
            threading.Thread(target=self._run, args=(mailbox,), name=name).start()
        except RuntimeError:
            now = time.monotonic()
            if now >= self._next_log:
                self._next_log = now + LOG_SECONDS
                log.exception("no thread can be started: requests wait for %d", self._started)
            return None
        self._started += 1
        return mailbox

    @property
    def _can_begin(self) -> bool:
        return (
            bool(self._jobs)
            and self._busy < self._number
            and len(self._new) < MAX_NEW
            and (self._computing.is_free or self._computing.is_longer_than(LEAD_SECONDS))
        )

    def _run(self, mailbox: Mailbox) -> None:
        following: Job | _Next = _Next.IDLE
        while following is not _Next.END:
            if following is _Next.IDLE:
                following = self._next(mailbox) if mailbox.get() else _Next.END
            elif following is _Next.TURN:
                self._take_turn()
                following = self._next(mailbox, has_turned=True)
            else:
                self._do(following, mailbox)
                following = self._next(mailbox)
        with self._lock:
            self._started -= 1

    def _next(self, mailbox: Mailbox, *, has_turned: bool = False) -> Job | _Next:
        with self._lock:
            leads = self._leader is mailbox
            self._began = 0.0 if leads else self._began
            now = time.monotonic()
            is_due = leads and now - self._turned > TURN_SECONDS
            if self._can_begin and (has_turned or self._is_ending or not is_due):
                job = self._jobs.popleft()
                self._since.popleft()
                self._busy += 1
                self._new[mailbox] = now
                if leads:
                    self._began = now
                self._computing.begin(mailbox)
                self._wake_watch()
                return job
            if self._is_ending:
                return _Next.END
            if leads:
                return _Next.TURN
            self._idle.append(mailbox)
            return _Next.IDLE

    def _do(self, job: Job, mailbox: Mailbox) -> None:
        compute_under(_Lock(self, mailbox), has_lock=True)
        try:
            job()
        except BaseException:
            log.exception("a request could not be answered")
        compute_freely()
        with self._lock:
            self._busy -= 1
            self._new.pop(mailbox, None)
            self._computing.end(mailbox)

    def wait(self, mailbox: Mailbox) -> None:
        """The job of this thread is going to wait: others compute meanwhile, and one leads."""
        with self._lock:
            self._new.pop(mailbox, None)
            self._computing.end(mailbox)
            if self._leader is mailbox:
                self._lead_elsewhere()
            else:
                self._help()

    def resume(self, mailbox: Mailbox) -> None:
        """Return when this thread, whose job has waited, may compute."""
        with self._lock:
            can_compute = self._computing.resume(mailbox)
            self._wake_watch()
        if not can_compute:
            mailbox.get()

    def _take_turn(self) -> None:
        with self._turning:
            if self._is_ending:
                return
            with self._lock:
                can_wait = not self._can_begin
            try:
                self._turn(can_wait)
                self._turned = time.monotonic()
            except BaseException as error:
                self.failure, self._is_ending = error, True
        if self.failure is not None:
            self._failed()

    def _wake_watch(self) -> None:
        if self._asleep is not None:
            self._asleep.put(None)
            self._asleep = None

    def _watch(self) -> None:
        """Let another thread lead while a job takes long, and others begin when it is not new."""
        used_at = time.monotonic()
        while not self._has_ended:
            time.sleep(LEAD_SECONDS)
            asleep: SimpleQueue[None] | None = None
            with self._lock:
                now = time.monotonic()
                if self._new or self._began or not self._computing.is_free:
                    used_at = now
                    self._look(now)
                elif now - used_at > IDLE_SECONDS:
                    asleep = self._asleep = SimpleQueue()
            if asleep is not None:
                asleep.get()
                used_at = time.monotonic()

    @property
    def _has_ended(self) -> bool:
        with self._lock:
            is_turning = self._turning.locked()  # first: a turn may still submit jobs
            return self._is_ending and not (is_turning or self._jobs or self._busy)

    def _look(self, now: float) -> None:
        for thread in [key for key, began in self._new.items() if now - began > NEW_SECONDS]:
            del self._new[thread]
        self._computing.expire()
        if self._began and now - self._began > LEAD_SECONDS:
            self._lead_elsewhere()
        self._help()


class _Lock(NamedTuple):
    """What the job of a thread computes under: `memservice.compute_lock.Lock`."""

    threads: Threads
    mailbox: Mailbox

    def acquire(self) -> bool:
        self.threads.resume(self.mailbox)
        return True

    def release(self) -> None:
        self.threads.wait(self.mailbox)
